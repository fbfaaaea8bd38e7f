#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Open MPI: a recorder around each rank, which is a node of the report. One run id for all:
#   mpirun -x RUN="mpi-$(date +%s)" -n 4 examples/fleet/mpirun.sh COMMAND [ARG...]
exec proctor run --run-id "${RUN:?mpirun -x RUN=... has to name the run}" \
    --node "${OMPI_COMM_WORLD_RANK:?is set by mpirun}" -- "$@"
