#include "tools/checks/bench/light_stream.hpp"

#include <catch2/catch.hpp>

using namespace leasehold::bench;

TEST_CASE("bench: a line is known by its method, whatever text the model wrote") {
  CHECK(kind_of(R"({"jsonrpc":"2.0","method":"token","params":{"text":"a"}})") == LineKind::Token);
  CHECK(kind_of(R"({"jsonrpc":"2.0","method":"completed","params":{"detail":""}})") ==
        LineKind::Completed);
  CHECK(kind_of(R"({"id":1,"jsonrpc":"2.0","result":{}})") == LineKind::Other);
  CHECK(
      kind_of(R"({"jsonrpc":"2.0","method":"completed","params":{"x":"\"method\":\"token\""}})") ==
      LineKind::Completed);
  CHECK(kind_of("") == LineKind::Other);
}
