/// Code that can pause and continue on a stack of its own. AddressSanitizer is notified of every
/// switch.
///
/// Lifetime: the destructor unwinds a paused fiber like an exception. Threads: only the thread that
/// created the fiber. Errors: an exception from a body ends the process.
#pragma once

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include <boost/context/fiber.hpp>
#include <functional>

namespace leasehold::testing {

class Fiber {
 public:
  /// The stack that is already running, from which other fibers are entered.
  Fiber() = default;
  /// Starts when first entered. At its end, the fiber that entered it last continues.
  explicit Fiber(std::function<void()> body) : body_(std::move(body)) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Pauses this fiber and continues `to`; returns when another fiber enters this one.
  /// Precondition: this fiber is running, and `to` has not ended.
  void enter(Fiber& to) {
    if (!to.context_) to.prepare();
    to.entered_by_ = this;
    to.switched_from_ = this;
    switch_to(to);
    const Arrival arrival(*this);
    boost::context::fiber from = std::move(to.context_).resume();
    switched_from_->context_ = std::move(from);  // empty if that fiber has ended
  }

  /// Enters this fiber from the running one; returns at its next pause or its end.
  void resume();
  /// In a resumed fiber: returns to the fiber that called resume(). Elsewhere: does nothing.
  static void pause();

 private:
  /// Every switch ends here, also when it unwinds: the fiber first reports its arrival.
  class Arrival {
   public:
    explicit Arrival(Fiber& fiber) : fiber_(fiber) {}
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;
    ~Arrival() { fiber_.arrive(); }

   private:
    Fiber& fiber_;
  };

  void prepare();
  boost::context::fiber live(boost::context::fiber&& from);

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  void switch_to(const Fiber& to) {
    __sanitizer_start_switch_fiber(&frames_, to.bottom_, to.size_bytes_);
  }
  /// Also stores the bounds of the stack that ran before, which may be the thread's own.
  void arrive() {
    __sanitizer_finish_switch_fiber(frames_, &switched_from_->bottom_,
                                    &switched_from_->size_bytes_);
  }
  /// The last frames on the stack belong to Boost and never return, so their guards stay.
  void switch_for_last_time() {
    __sanitizer_start_switch_fiber(&frames_, entered_by_->bottom_, entered_by_->size_bytes_);
  }
#else
  void switch_to(const Fiber&) {}
  void arrive() {}
  void switch_for_last_time() {}
#endif

  std::function<void()> body_;
  boost::context::fiber context_;   ///< Where the fiber paused; empty while it runs.
  Fiber* entered_by_ = nullptr;     ///< Continues at this fiber's end.
  Fiber* switched_from_ = nullptr;  ///< The fiber that ran before: it entered this one or ended.
  const void* bottom_ = nullptr;
  std::size_t size_bytes_ = 0;
  void* frames_ = nullptr;  ///< AddressSanitizer's state for a paused stack.
};

}  // namespace leasehold::testing
