#ifndef NODESCOPE_ARENAS_H
#define NODESCOPE_ARENAS_H

#include <stddef.h>

/* From now on Python's arenas are remembered; 0 where this version's are not known to us. With the interpreter lock. */
int watch_arenas(void);

/* Pages of unused pools go back to the kernel; how many bytes. With the interpreter lock. */
size_t give_back_pools(void);

#endif
