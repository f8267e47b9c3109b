/// Fibers pause, continue, end, and are unwound.
#include "tests/support/fiber.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace leasehold::testing {

TEST_CASE("fiber: it pauses and continues; at its end the last resumer continues") {
  std::string seen;
  Fiber fiber([&] {
    seen += 'a';
    Fiber::pause();
    seen += 'b';
  });
  fiber.resume();
  CHECK(seen == "a");
  fiber.resume();
  CHECK(seen == "ab");
}

TEST_CASE("fiber: a fiber returns to the fiber that entered it last") {
  std::string seen;
  Fiber here;
  Fiber* outer = nullptr;
  Fiber inner([&] { seen += 'i'; });
  Fiber first([&] {
    seen += '1';
    outer->enter(inner);
    seen += '2';
  });
  outer = &first;
  here.enter(first);
  CHECK(seen == "1i2");
}

TEST_CASE("fiber: destroying a paused fiber destroys its local variables") {
  struct Mark {
    std::string* seen;
    ~Mark() { *seen += 'x'; }
  };
  std::string seen;
  {
    Fiber fiber([&] {
      const Mark mark{&seen};
      Fiber::pause();
      seen += '!';
    });
    fiber.resume();
    CHECK(seen.empty());
  }
  CHECK(seen == "x");
}

}  // namespace leasehold::testing
