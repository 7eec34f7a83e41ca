"""What a type checker must find: one mistake a line, each marked."""

import mpc_rr
from mpc_rr import Domain, KeepOrUniform, RRIndependent, run_study, simulate, study_from_frame

KeepOrUniform("four", keep=[]).no_such_method()  # wrong: arg-type, arg-type, attr-defined
run_study(42, wrong=1)  # wrong: call-arg, arg-type
simulate("study.toml")  # wrong: arg-type
study_from_frame({}, protocol=RRIndependent(keep="half"), title="Travel")  # wrong: arg-type
mpc_rr.no_such_name  # wrong: attr-defined
number: int = mpc_rr.__version__  # wrong: assignment
Domain.of("schema")  # wrong: arg-type
