/*
 * The process of a pretended container: `worker MILLISECONDS` wakes up after
 * each pause, touches 64 KiB of fresh memory and gives it back.
 *
 * A sleeping process would flatter every reader: the kernel keeps the
 * counters of an idle cgroup ready and has nothing to sum up.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BYTES = 64 * 1024 };

int main(int count, char **words) {
  long milliseconds = count > 1 ? atol(words[1]) : 100;
  struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000 * 1000};
  char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  for (;;) {
    memset(memory, 1, BYTES);
    madvise(memory, BYTES, MADV_DONTNEED);
    nanosleep(&pause, NULL);
  }
}
