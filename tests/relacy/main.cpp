// Runs the protocol under relacy: as written it must hold, each planted variant must fail. Prints
// one line per run. The first unexpected result ends the program with exit code 1; a failing
// execution is printed with its history.
//
//   gate_model_test [executions]     number of random executions of the protocol as written
#include <cstdlib>
#include <iostream>

#include "tests/relacy/protocol.hpp"

namespace leasehold::kernels_model {
namespace {

enum class Expect : bool { Holds, Broken };

struct Search {
  rl::scheduler_type_e scheduler;
  rl::iteration_t executions;  ///< Of a random or bounded search; a full search ends by itself.
  const char* name;
};

template <class Test>
rl::test_params simulate(const Search& search, bool with_history) {
  // No buffer: memory allocated within relacy's own allocator cannot be freed here.
  std::ostream nowhere(nullptr);
  rl::test_params params;
  params.search_type = search.scheduler;
  params.iteration_count = search.executions;
  params.context_bound = 3;
  params.output_stream = with_history ? &std::cout : &nowhere;
  params.progress_stream = &nowhere;
  params.collect_history = with_history;
  params.output_history = with_history;
  rl::simulate<Test>(params);
  return params;
}

template <class Test>
bool run(const char* what, Expect expect, const Search& search) {
  const rl::test_params params = simulate<Test>(search, false);
  const bool holds = params.test_result == rl::test_result_success;
  const bool as_expected = holds == (expect == Expect::Holds);
  std::cout << (as_expected ? "ok    " : "WRONG ") << what << ", " << search.name << ": "
            << (holds ? "holds" : rl::test_result_str(params.test_result)) << " after "
            << params.stop_iteration << " executions" << std::endl;
  if (!as_expected && !holds) simulate<Test>(search, true);
  return as_expected;
}

bool run_all(rl::iteration_t executions) {
  const Search random{rl::sched_random, executions, "random"};
  const Search bound{rl::sched_bound, executions, "at most 3 preemptions"};
  const Search full{rl::sched_full, executions, "full search"};
  return run<ProtocolSuite<AsWritten, 1, 3>>("as written, 1 gate", Expect::Holds, random) &&
         run<ProtocolSuite<AsWritten, 1, 3>>("as written, 1 gate", Expect::Holds, bound) &&
         run<ProtocolSuite<AsWritten, 1, 2>>("as written, 1 gate", Expect::Holds, full) &&
         run<ProtocolSuite<AsWritten, 2, 2>>("as written, 2 gates", Expect::Holds, random) &&
         run<ProtocolSuite<AsWritten, 2, 2>>("as written, 2 gates", Expect::Holds, bound) &&
         run<ProtocolSuite<RelaxedAnnounce, 1, 3>>("relaxed announce", Expect::Broken, random) &&
         run<ProtocolSuite<RelaxedAnnounce, 1, 2>>("relaxed announce", Expect::Broken, full) &&
         run<ProtocolSuite<CounterBeforeWord, 1, 3>>("counter before word", Expect::Broken,
                                                     random) &&
         run<ProtocolSuite<CounterBeforeWord, 1, 3>>("counter before word", Expect::Broken,
                                                     bound) &&
         run<ProtocolSuite<BaselineAfterCompare, 1, 3>>("baseline after compare", Expect::Broken,
                                                        random) &&
         run<ProtocolSuite<BaselineAfterCompare, 1, 3>>("baseline after compare", Expect::Broken,
                                                        bound) &&
         run<ProtocolSuite<SnapshotBeforeFlip, 1, 3>>("snapshot before flip", Expect::Broken,
                                                      random) &&
         run<ProtocolSuite<SnapshotBeforeFlip, 1, 3>>("snapshot before flip", Expect::Broken,
                                                      bound);
}

}  // namespace
}  // namespace leasehold::kernels_model

int main(int argc, char** argv) {
  const auto executions = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000;
  return leasehold::kernels_model::run_all(static_cast<rl::iteration_t>(executions)) ? 0 : 1;
}
