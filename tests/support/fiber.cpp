#include "tests/support/fiber.hpp"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace leasehold::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr std::size_t kStackBytes = 512 * 1024;  // AddressSanitizer guards every variable
#else
constexpr std::size_t kStackBytes = 128 * 1024;
#endif

/// Stacks that no fiber uses any more.
class FreeStacks {
 public:
  FreeStacks() = default;
  FreeStacks(const FreeStacks&) = delete;
  FreeStacks& operator=(const FreeStacks&) = delete;
  ~FreeStacks() {
    for (boost::context::stack_context& stack : stacks_) source_.deallocate(stack);
  }

  boost::context::stack_context take() {
    if (stacks_.empty()) return source_.allocate();
    const boost::context::stack_context stack = stacks_.back();
    stacks_.pop_back();
    return stack;
  }

  /// The frames that never returned have left their guards on the stack.
  void give_back(const boost::context::stack_context& stack) {
    ASAN_UNPOISON_MEMORY_REGION(static_cast<std::byte*>(stack.sp) - stack.size, stack.size);
    stacks_.push_back(stack);
  }

 private:
  boost::context::protected_fixedsize_stack source_{kStackBytes};
  std::vector<boost::context::stack_context> stacks_;
};

/// A stack allocator for Boost.Context. Each stack in use keeps the thread's free stacks alive.
struct Stacks {
  std::shared_ptr<FreeStacks> free;

  static Stacks mine() {
    thread_local const auto free = std::make_shared<FreeStacks>();
    return {free};
  }
  boost::context::stack_context allocate() const { return free->take(); }
  void deallocate(const boost::context::stack_context& stack) const { free->give_back(stack); }
};

thread_local Fiber* resumed = nullptr;  ///< The fiber that runs because of resume().

}  // namespace

void Fiber::prepare() {
  const Stacks stacks = Stacks::mine();
  const boost::context::stack_context stack = stacks.allocate();
  bottom_ = static_cast<const std::byte*>(stack.sp) - stack.size;
  size_bytes_ = stack.size;
  context_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), stacks,
      [this](boost::context::fiber&& from) { return live(std::move(from)); });
}

boost::context::fiber Fiber::live(boost::context::fiber&& from) {
  struct Leaving {
    Fiber& fiber;
    ~Leaving() { fiber.switch_for_last_time(); }
  };
  const Leaving leaving{*this};
  arrive();
  entered_by_->context_ = std::move(from);
  body_();
  entered_by_->switched_from_ = this;
  return std::move(entered_by_->context_);
}

/// Boost unwinds the fiber from here and returns here.
Fiber::~Fiber() {
  if (!context_) return;
  Fiber here;
  Fiber* const before = std::exchange(resumed, nullptr);  // destructors on the fiber do not pause
  entered_by_ = &here;
  switched_from_ = &here;
  here.switched_from_ = this;
  here.switch_to(*this);
  context_ = {};
  here.arrive();
  resumed = before;
}

void Fiber::resume() {
  Fiber here;
  Fiber* const before = std::exchange(resumed, this);
  here.enter(*this);
  resumed = before;
}

void Fiber::pause() {
  Fiber* const self = resumed;
  if (self != nullptr) self->enter(*self->entered_by_);
}

}  // namespace leasehold::testing
