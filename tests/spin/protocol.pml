/* The lease protocol of one slot and one worker, every interleaving.
 *
 * The worker's threads pass units through the gate. The broker revokes, waits for proof, fences,
 * scrubs, asks for the memory and grants the slot again, once, to another tenant. Meanwhile the
 * worker's socket may break and the worker may be killed at any point. The reason of the revocation
 * is not modelled.
 * Memory is sequentially consistent here (tests/relacy covers weaker orders); a relaxed announcement
 * is modelled as one stored after the poll.
 *
 * The states and their moves come from transitions.pml, which is generated from the code.
 * Planted variants (spin -D NAME): RELAXED_ANNOUNCE, COUNTER_BEFORE_WORD, BASELINE_AFTER_COMPARE,
 * NO_GENERATION, EOF_AS_PROOF, UNMAP_BEFORE_QUIET, SNAPSHOT_BEFORE_FLIP, EXIT_BEFORE_GONE.
 */
#include "transitions.pml"

#define THREADS 2
#define UNITS 1   /* of each thread; a unit that finds the counter moved begins again */
#define GRANTS 2
#define TOUCHES 2 /* a unit that reaches tenant memory */

/* Shared memory. */
byte state = lease_Closed;   /* state part of the word */
byte generation = 0;         /* generation part of the word */
byte revocations = 1;
byte announce[THREADS];

/* Kernel state and the broker's books. */
bool alive = true;           /* the worker process */
byte gone_threads = 0;       /* its pidfd is readable when all have ended */
bool socket_open = true;
byte worker = worker_Ready;
byte extent[GRANTS];         /* of each generation; starts Free */
bool mapped[GRANTS];         /* by the worker */

/* What the properties check. */
byte touching[THREADS];      /* generation + 1 of the memory a unit touches; 0: none */
bool flipped[GRANTS];        /* word and counter are stored */
bool fenced[GRANTS];
byte completions = 0;               /* typed ends that the first lease's holder receives */
bool reported = false;
bool unmap_asked = false;

ltl no_touch_after_fence {
  [] !((fenced[0] && (touching[0] == 1 || touching[1] == 1)) ||
       (fenced[1] && (touching[0] == 2 || touching[1] == 2)))
}

/* True when thread `i` has ended the unit seen in the snapshot. */
#define is_quiet(i) ((seen[i] & 3) < TOUCHES || announce[i] != seen[i])

inline compare() {
#ifdef NO_GENERATION
  same = (state == lease_Live)
#else
  same = (state == lease_Live && generation == mine)
#endif
}

/* The counter first, then the words; the value read first is kept. */
inline recheck() {
#ifdef BASELINE_AFTER_COMPARE
  compare();
  read = revocations;
#else
  read = revocations;
  compare();
#endif
  baseline = read;
  if
  :: live && !same ->
     live = false;
     atomic { if :: !reported -> reported = true; completions++; assert(completions <= 1) :: else fi }
  :: else
  fi
}

inline poll() { changed = (revocations != baseline) }

inline begin_unit() {
  begun_flipped = flipped[mine - 1];
  seq++;
#ifdef RELAXED_ANNOUNCE
  poll();
  announce[id] = seq * 4 + TOUCHES;
#else
  announce[id] = seq * 4 + TOUCHES;
  poll();
#endif
}

inline unit() {
  begin_unit();
  do
  :: changed ->
     announce[id] = seq * 4;
     recheck();
     if :: live -> begin_unit() :: else -> changed = false fi
  :: else -> break
  od;
  if
  :: live ->
     /* Only the unit that was at the gate when the word was revoked may still run. */
     atomic { assert(!begun_flipped); assert(mapped[mine - 1]); touching[id] = mine };
     assert(mapped[mine - 1]);
     touching[id] = 0
  :: else
  fi;
  announce[id] = seq * 4
}

/* One thread of the first tenant's steps. This worker runs no unit for the second grant and must not
 * touch its memory. */
proctype Gate(byte id) {
  byte seq = 0, baseline = 0, read = 0, units = 0;
  byte mine = 1;
  bool live = true, same, changed, begun_flipped;
  {
    do
    :: units < UNITS && live -> unit(); units++
    :: units < UNITS && !live -> break
    :: units == UNITS -> break
    od;
    alive == false /* idle until it is killed, if it is */
  } unless { !alive };
  atomic { touching[id] = 0; gone_threads++ }
}

/* The worker's control thread: unmaps on request, once the word is Fenced. */
proctype Control() {
  {
#ifdef UNMAP_BEFORE_QUIET
    state != lease_Live && generation == 1;
    mapped[0] = false;
#endif
    unmap_asked && state == lease_Fenced;
    mapped[0] = false;
    unmap_asked = false
  } unless { !alive }
}

inline store_words(to) {
#ifdef COUNTER_BEFORE_WORD
  revocations++;
  move_lease(state, to)
#else
  move_lease(state, to);
  revocations++
#endif
}

inline snapshot() { seen[0] = announce[0]; seen[1] = announce[1] }

inline revoke() {
#ifdef SNAPSHOT_BEFORE_FLIP
  snapshot();
#endif
  store_words(lease_Revoked);
  flipped[generation - 1] = true;
  atomic { move_extent(extent[generation - 1], extent_Draining) };
#ifndef SNAPSHOT_BEFORE_FLIP
  snapshot()
#endif
}

#ifdef EXIT_BEFORE_GONE
#define has_exited (!alive)
#else
#define has_exited (!alive && gone_threads == THREADS)
#endif

/* Waits for proof: quiet gates, or the exit of the process. A closed socket is no proof. The ladder
 * may kill the worker instead of waiting longer. */
inline await_proof() {
  do
  :: is_quiet(0) && is_quiet(1) -> break
  :: has_exited -> break
#ifdef EOF_AS_PROOF
  :: !socket_open -> break
#endif
  :: atomic { alive && !killed -> killed = true; alive = false; socket_open = false }
  od
}

inline lose_worker() {
  if
  :: atomic { !socket_open && worker == worker_Ready -> move_worker(worker, worker_Lost) }
  :: else
  fi
}

/* Fence, scrub, then free the memory: after the worker's reply or its exit. */
inline fence() {
  atomic { store_words(lease_Fenced); fenced[0] = true };
  atomic { move_extent(extent[0], extent_Scrubbing) };
  lose_worker();
  unmap_asked = true;
  do
  :: socket_open && !mapped[0] -> break
  :: has_exited ->
     mapped[0] = false;
     lose_worker();
     move_worker(worker, worker_Gone);
     break
  :: atomic { alive && !killed -> killed = true; alive = false; socket_open = false }
  od;
  atomic { assert(!mapped[0]); move_extent(extent[0], extent_Free) }
}

proctype Broker() {
  byte seen[THREADS];
  bool killed = false;
  if
  :: skip              /* an operator, a deadline */
  :: socket_open = false /* the worker's connection breaks, it keeps decoding */
  fi;
  revoke();
  await_proof();
  fence();
  /* Grants the slot again, under the next generation, to another tenant on another worker. */
  atomic {
    generation++;
    move_lease(state, lease_Live);
    move_extent(extent[1], extent_Owned)
  }
}

init {
  atomic {
    generation = 1;
    move_lease(state, lease_Live);
    move_extent(extent[0], extent_Owned);
    mapped[0] = true;
    run Gate(0);
    run Gate(1);
    run Control();
    run Broker()
  }
}
