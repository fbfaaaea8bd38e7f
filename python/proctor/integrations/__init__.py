# SPDX-License-Identifier: Apache-2.0
"""proctor inside other frameworks, each in a small module that imports its framework when it is used.

| module | what |
|---|---|
| `proctor.integrations.mlflow` | the active MLflow run gets samples, tags and the report |
| `proctor.integrations.lightning` | `ProctorCallback` for a Trainer of Lightning |
| `proctor.integrations.huggingface` | `ProctorCallback` for the Trainer of Hugging Face |
| `proctor.integrations.metaflow` | `track_resources`, a decorator of steps |

joblib, multiprocessing and workers of a DataLoader need nothing: they are children, and children are seen.
"""
