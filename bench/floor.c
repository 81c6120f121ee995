/*
 * What reading files costs when nothing is made of the bytes.
 *
 * kept    pread at offset 0 on descriptors opened once: the floor. Nobody who
 *         reads these files from user space can be cheaper.
 * opened  open, read, close each time: what the peers do.
 *
 *   floor [-n ROUNDS] FILE...        or the list on standard input, one a line
 *   floor -f LIST                    one round of each kind per line of input,
 *                                    so that a caller can interleave its own
 *
 * With -f a line of input may hold the numbers of files in LIST (from 1), and
 * only these are read, in this order: a negative one by open, read and close,
 * the others from their descriptors. A path that begins with '+' has none.
 * The answer then is: turn 0.003211 bytes 904213
 *
 * One line a round, in seconds of CPU (user + system, this process):
 *   kept 0.003211 opened 0.010377 bytes 904213
 * and, without -f, the minimum and the median of all rounds at the end.
 * A file that is gone is skipped, as a sampler would.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Larger than any file a tick reads: /proc/vmstat has 4 KiB, /proc/stat of a
   large machine 20 KiB. One read takes all, as in the sampler. */
#define BUFFER_BYTES (256 * 1024)

static char buffer[BUFFER_BYTES];
static char **paths;
static int *descriptors;
static size_t count, room;

static void die(const char *what) {
  fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void add_path(const char *path) {
  if (count == room) {
    room = room ? 2 * room : 1024;
    paths = realloc(paths, room * sizeof *paths);
    if (!paths) die("realloc");
  }
  paths[count] = strdup(path);
  if (!paths[count++]) die("strdup");
}

static void read_list(FILE *list) {
  char *line = NULL;
  size_t size = 0;
  ssize_t length;
  while ((length = getline(&line, &size, list)) > 0) {
    if (line[length - 1] == '\n') line[--length] = 0;
    if (length) add_path(line);
  }
  free(line);
}

static void open_all(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  descriptors = malloc(count * sizeof *descriptors);
  if (!descriptors) die("malloc");
  for (size_t i = 0; i < count; i++) {
    descriptors[i] = -1;
    if (paths[i][0] == '+') {
      paths[i]++;
      continue;
    }
    descriptors[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
    if (descriptors[i] < 0 && errno == EMFILE) die(paths[i]);
  }
}

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double read_kept(size_t *bytes) {
  double start = cpu_seconds();
  *bytes = 0;
  for (size_t i = 0; i < count; i++) {
    ssize_t got = pread(descriptors[i], buffer, BUFFER_BYTES, 0);
    if (got > 0) *bytes += (size_t)got;
  }
  return cpu_seconds() - start;
}

static size_t read_anew(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  ssize_t got = read(descriptor, buffer, BUFFER_BYTES);
  close(descriptor);
  return got > 0 ? (size_t)got : 0;
}

static double read_opened(void) {
  double start = cpu_seconds();
  for (size_t i = 0; i < count; i++) read_anew(paths[i]);
  return cpu_seconds() - start;
}

/* The files of one turn: the line is taken apart before the clock starts. */
static void one_turn(char *line) {
  static long *turn;
  static size_t turn_room;
  size_t length = 0, bytes = 0;
  for (char *end; ; line = end) {
    long number = strtol(line, &end, 10);
    if (end == line) break;
    if (labs(number) < 1 || (size_t)labs(number) > count) continue;
    if (length == turn_room) {
      turn_room = turn_room ? 2 * turn_room : 1024;
      turn = realloc(turn, turn_room * sizeof *turn);
      if (!turn) die("realloc");
    }
    turn[length++] = number;
  }
  double start = cpu_seconds();
  for (size_t i = 0; i < length; i++) {
    size_t file = (size_t)labs(turn[i]) - 1;
    if (turn[i] < 0) bytes += read_anew(paths[file]);
    else {
      ssize_t got = pread(descriptors[file], buffer, BUFFER_BYTES, 0);
      if (got > 0) bytes += (size_t)got;
    }
  }
  printf("turn %.9f bytes %zu\n", cpu_seconds() - start, bytes);
  fflush(stdout);
}

static void one_round(double *kept, double *opened) {
  size_t bytes;
  *kept = read_kept(&bytes);
  *opened = read_opened();
  printf("kept %.9f opened %.9f bytes %zu\n", *kept, *opened, bytes);
  fflush(stdout);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void summary(const char *name, double *seconds, int rounds) {
  qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
  printf("%s min %.9f median %.9f\n", name, seconds[0], seconds[rounds / 2]);
}

static void serve(void) {
  double kept, opened;
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, stdin) > 0) {
    if (line[0] == '\n') one_round(&kept, &opened);
    else one_turn(line);
  }
  free(line);
}

int main(int argc, char **argv) {
  int option, rounds = 50;
  FILE *list = NULL;
  while ((option = getopt(argc, argv, "n:f:")) != -1) {
    if (option == 'n') rounds = atoi(optarg);
    else if (option == 'f') {
      list = fopen(optarg, "r");
      if (!list) die(optarg);
    } else return 2;
  }
  if (rounds < 1) return 2;
  if (list) read_list(list);
  else if (optind < argc) for (int i = optind; i < argc; i++) add_path(argv[i]);
  else read_list(stdin);
  open_all();
  if (list) {
    serve();
    return 0;
  }
  double *kept = malloc((size_t)rounds * sizeof *kept), *opened = malloc((size_t)rounds * sizeof *opened);
  if (!kept || !opened) die("malloc");
  for (int i = 0; i < rounds; i++) one_round(&kept[i], &opened[i]);
  summary("kept", kept, rounds);
  summary("opened", opened, rounds);
  return 0;
}
