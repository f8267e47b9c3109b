// Writes the code's state tables as Promela, so that the model cannot differ from them: a constant
// for every state, and `move_KIND(variable, to)`, which asserts that the table allows the move.
#include <cstdio>
#include <string>
#include <string_view>

#include "broker/books/extents.hpp"
#include "broker/books/workers.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kWorkerNames[kWorkerStateCount] = {"Attached", "Ready", "Lost", "Gone"};

template <class State, class NameOf>
void print_table(const char* kind, int count, NameOf name_of) {
  for (int i = 0; i < count; ++i) {
    std::printf("#define %s_%s %d\n", kind, std::string(name_of(static_cast<State>(i))).c_str(), i);
  }
  std::printf("#define may_become_%s(from, to) (false", kind);
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (!may_become(static_cast<State>(from), static_cast<State>(to))) continue;
      std::printf(" || (from == %d && to == %d)", from, to);
    }
  }
  std::printf(")\ninline move_%s(what, to) { assert(may_become_%s(what, to)); what = to }\n\n",
              kind, kind);
}

}  // namespace
}  // namespace leasehold

int main() {
  using namespace leasehold;
  std::puts("/* Generated from the may_become tables of the code. */");
  print_table<LeaseState>("lease", kLeaseStateCount, [](LeaseState s) { return name(s); });
  print_table<ExtentState>("extent", kExtentStateCount, [](ExtentState s) { return name(s); });
  print_table<WorkerState>("worker", kWorkerStateCount,
                           [](WorkerState s) { return kWorkerNames[static_cast<int>(s)]; });
  return 0;
}
