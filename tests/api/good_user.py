"""What users type, as DESIGN promises it: it must pass ``mypy --strict``, and run."""

import sys
from pathlib import Path

import numpy as np

import mpc_rr
from mpc_rr import (
    Claim,
    Domain,
    GaussianShares,
    Microdata,
    NamedEstimates,
    NoiseShares,
    RRIndependent,
    Run,
    Study,
    Table,
    count_table,
    mdav,
    records_from_frame,
    simulate,
    study_from_frame,
    verify,
)
from mpc_rr.randomness import SeededRandomness

frame = {
    "car": ["yes", "no", "no", "yes", "no", "yes"] * 5,
    "place": ["city", "city", "village", "village", "city", "village"] * 5,
}
study: Study = study_from_frame(frame, protocol=RRIndependent(keep=0.6), title="Travel")
run: Run = simulate(study, frame, seed=1)
table: Table = run.tables["car", "place"]
shares: tuple[int | float | None, ...] = table.values
claims: tuple[Claim, ...] = verify(run)
folder: Path = run.save(Path(sys.argv[1]) / "run")
page: Path = run.report(Path(sys.argv[1]) / "report.html")
shown: str = run._repr_html_()
again: mpc_rr.Publication = mpc_rr.read_folder(folder).file.publication

records = records_from_frame(frame, study.schema)
domain: Domain = Domain.of(study.schema)
design: mpc_rr.Design = domain.independent(keep=0.6)
rng = np.random.default_rng(1)
fitted = mpc_rr.Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
estimated: Table = NamedEstimates(study.schema, fitted).table("car", "place")
counted: Table = count_table(records, study.schema, "car")
groups = mdav(Microdata.of(study.schema.attributes, [tuple(row) for row in records.tolist()]), 3)
noise: type[NoiseShares | GaussianShares] = NoiseShares
version: str = mpc_rr.__version__
print(run.publication.findings[0].text, len(groups), counted.values, version, claims[0].verdict)
