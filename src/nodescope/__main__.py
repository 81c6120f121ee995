"""`python -m nodescope` is `nodescope`."""

import sys

from nodescope.cli import main

sys.exit(main())
