# SPDX-License-Identifier: Apache-2.0
"""What tools/bench, tools/growth and tools/soak have in common."""
