# SPDX-License-Identifier: Apache-2.0
"""Trainings with the real Lightning, Hugging Face Trainer and DataLoader. For `make test-full`: torch is large."""
import os

from pythons import run_script, tools

# The newest of each that work with Debian's torch.
PACKAGES = ["lightning==2.0.9", "transformers==4.40.2", "accelerate==0.29.3"]
DATA = """
    import csv, os, sys, time
    import torch
    from torch.utils.data import DataLoader, Dataset
    class Squares(Dataset):
        def __len__(self): return 64
        def __getitem__(self, i):
            time.sleep(0.005)
            x = torch.rand(8)
            return {"x": x, "labels": (x * x).sum()}
    def most_processes():
        import proctor
        return max(proctor.Run.open("a.proctor").samples(["procs"])["procs"])
"""


def train(folder, text):
    python = tools("training", *PACKAGES, system=True) / "python"
    return run_script(python, DATA + text, folder, patience=300)


if os.environ.get("PROCTOR_TEST_FULL") == "1":
    def test_lightning_trains(tmp_path):
        """Its epochs and validations are phases, its logger has our values beside its own, workers are children."""
        train(tmp_path, """
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.loggers import CSVLogger
    from proctor.integrations.lightning import ProctorCallback
    class Model(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)
        def loss(self, batch):
            return ((self.layer(batch["x"]).squeeze(1) - batch["labels"]) ** 2).mean()
        def training_step(self, batch, _):
            self.log("loss", self.loss(batch))
            return self.loss(batch)
        def validation_step(self, batch, _): self.log("validation", self.loss(batch))
        def test_step(self, batch, _): self.log("test", self.loss(batch))
        def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.01)
    callback = ProctorCallback(interval=0.02, output="a.proctor", report="a.html")
    loader = DataLoader(Squares(), batch_size=8, num_workers=2)
    trainer = Trainer(max_epochs=2, accelerator="cpu", callbacks=[callback], logger=CSVLogger("."), log_every_n_steps=1,
                      enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Model(), loader, loader)
    names = [phase["name"] for phase in callback.summary.phases]
    assert {"epoch 0", "epoch 1", "validation"} <= set(names), names
    assert most_processes() >= 3
    assert os.path.getsize("a.html") > 10000
    with open(os.path.join(trainer.logger.log_dir, "metrics.csv")) as f:
        rows = list(csv.DictReader(f))
    assert sum(bool(row["process/memory_rss_megabytes"]) for row in rows) >= 2 and any(row["loss"] for row in rows)
    class Broken(Model):
        def training_step(self, batch, _): raise ValueError("broken")
    broken = ProctorCallback(interval=0.02)
    try:
        Trainer(max_epochs=1, accelerator="cpu", callbacks=[broken], logger=False, enable_progress_bar=False,
                enable_model_summary=False, enable_checkpointing=False).fit(Broken(), loader)
        raise SystemExit("it has not failed")
    except ValueError: pass
    assert broken.summary["cpu.time"].total > 0
        """)

    def test_the_trainer_of_hugging_face_trains(tmp_path):
        train(tmp_path, """
    from transformers import Trainer, TrainingArguments
    from proctor.integrations.huggingface import ProctorCallback
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)
        def forward(self, x, labels):
            found = self.layer(x).squeeze(1)
            return {"loss": ((found - labels) ** 2).mean(), "logits": found}
    callback = ProctorCallback(interval=0.02, output="a.proctor", report="a.html")
    settings = TrainingArguments("out", num_train_epochs=2, evaluation_strategy="epoch", save_strategy="epoch",
                                 logging_steps=2, report_to=[], use_cpu=True, dataloader_num_workers=2, disable_tqdm=True)
    trainer = Trainer(Model(), settings, train_dataset=Squares(), eval_dataset=Squares(), callbacks=[callback])
    trainer.train()
    assert [phase["name"] for phase in callback.summary.phases] == ["epoch 0", "epoch 1"], callback.summary.phases
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert logged and all(entry["process/memory_rss_megabytes"] > 50 for entry in logged), logged
    assert most_processes() >= 3
    assert os.path.getsize("a.html") > 10000
        """)
