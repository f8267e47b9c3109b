#include "tests/checks/bench/light_stream.hpp"

#include <catch2/catch.hpp>

using namespace leasehold::bench;

TEST_CASE("bench: a line is classified by its method, not by text of the model") {
  CHECK(kind_of(R"({"jsonrpc":"2.0","method":"token.emitted","params":{"text":"a"}})") ==
        LineKind::Token);
  CHECK(kind_of(R"({"jsonrpc":"2.0","method":"request.completed","params":{"detail":""}})") ==
        LineKind::Completed);
  CHECK(kind_of(R"({"id":1,"jsonrpc":"2.0","result":{}})") == LineKind::Other);
  CHECK(
      kind_of(
          R"({"jsonrpc":"2.0","method":"request.completed","params":{"x":"\"method\":\"token.emitted\""}})") ==
      LineKind::Completed);
  CHECK(kind_of("") == LineKind::Other);
}
