# SPDX-License-Identifier: Apache-2.0
"""The classes of five other monitors, over libproctor: one changed import line moves a program over.

| instead of | write |
|---|---|
| `stouputils.mlflow.process_metrics_monitor` | `proctor.compat.stouputils` |
| `resource_tracker` (0.5) | `proctor.compat.resource_tracker` |
| `resource_tracker.tracker` (0.1) | `proctor.compat.resource_tracker_0_1` |
| `oasislmf.execution.resource_monitor` | `proctor.compat.oasislmf` |
| `pytyche.diagnostics.run_monitor` | `proctor.compat.pytyche` |
| `spdl.pipeline` | `proctor.compat.spdl` |

doc/migrate.md says for each what is the same and what is now right. Nothing is imported here.
"""
