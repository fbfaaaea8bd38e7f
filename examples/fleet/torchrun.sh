#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# torchrun: the same line on each node, with NODE_RANK, NNODES, MASTER_ADDR and RUN set as the
# launcher of the cluster does it. The recorder is outside: it sees the agent and all its workers.
exec proctor run --run-id "${RUN:?has to name the run, alike on all nodes}" \
    --node "${NODE_RANK:?is the number of this node}" -- \
    torchrun --nnodes "$NNODES" --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" "$@"
