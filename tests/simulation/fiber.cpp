#include "tests/simulation/fiber.hpp"

#include <boost/context/pooled_fixedsize_stack.hpp>
#include <memory>

namespace leasehold::simulation {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;  // a decision runs on it, with sanitizers too

thread_local Fiber* running = nullptr;

boost::context::pooled_fixedsize_stack& stacks() {
  thread_local boost::context::pooled_fixedsize_stack pool(kStackBytes);
  return pool;
}

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : inside_(std::allocator_arg, stacks(),
              [this, body = std::move(body)](boost::context::fiber&& outside) {
                outside_ = std::move(outside);
                body();
                return std::move(outside_);
              }) {}

void Fiber::resume() {
  Fiber* const before = std::exchange(running, this);
  inside_ = std::move(inside_).resume();
  running = before;
}

void Fiber::pause() {
  Fiber* const self = running;
  if (self != nullptr) self->outside_ = std::move(self->outside_).resume();
}

}  // namespace leasehold::simulation
