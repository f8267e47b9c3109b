/// A thread of the simulated machine: runs until it pauses, goes on when the scheduler says so.
///
/// Lifetime: destroying a fiber that has not ended unwinds its stack, which is how a killed process
/// loses its threads; code on the way must not pause. Threads: a fiber stays on the thread that
/// made it.
#pragma once

#include <boost/context/fiber.hpp>
#include <functional>

namespace leasehold::simulation {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() = default;

  /// Runs the body up to its next pause or its end. Precondition: it has not ended.
  void resume();

  /// From within a fiber: back to whoever resumed it. Outside of any: nothing.
  static void pause();

 private:
  boost::context::fiber inside_;
  boost::context::fiber outside_;
};

}  // namespace leasehold::simulation
