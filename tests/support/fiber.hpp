/// Code that stands still and goes on, on a stack of its own. AddressSanitizer is told of every
/// change of stacks.
///
/// Lifetime: one that stands still in the middle is unwound by its destructor, as by an exception.
/// Threads: a fiber's own, that of whoever made it. Errors: what a body throws ends the process.
#pragma once

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include <boost/context/fiber.hpp>
#include <functional>

namespace leasehold::testing {

class Fiber {
 public:
  /// The stack that runs already: what others are entered from, and left to.
  Fiber() = default;
  /// Begins when it is entered first. At its end goes on who entered it last.
  explicit Fiber(std::function<void()> body) : body_(std::move(body)) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Stands still here and goes on there; returns once somebody enters this one. Precondition: this
  /// one runs, and `to` has not ended.
  void enter(Fiber& to) {
    if (!to.context_) to.prepare();
    to.entered_by_ = this;
    to.switched_from_ = this;
    switch_to(to);
    const Arrival arrival(*this);
    boost::context::fiber from = std::move(to.context_).resume();
    switched_from_->context_ = std::move(from);  // none when that one has ended
  }

  /// Enters this one from whoever runs, and comes back at its next pause or its end.
  void resume();
  /// From within a fiber that was resumed: back to whoever did. Anywhere else: nothing.
  static void pause();

 private:
  /// However a fiber goes on, unwound or not: first it says that it is there.
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
  /// Also how the bounds of a stack that was there already become known.
  void arrive() {
    __sanitizer_finish_switch_fiber(frames_, &switched_from_->bottom_,
                                    &switched_from_->size_bytes_);
  }
  /// What comes last on the stack is Boost's and has frames, too: they are not taken away.
  void switch_for_last_time() {
    __sanitizer_start_switch_fiber(&frames_, entered_by_->bottom_, entered_by_->size_bytes_);
  }
#else
  void switch_to(const Fiber&) {}
  void arrive() {}
  void switch_for_last_time() {}
#endif

  std::function<void()> body_;
  boost::context::fiber context_;   ///< Where it stands; none while it runs.
  Fiber* entered_by_ = nullptr;     ///< Who goes on at its end.
  Fiber* switched_from_ = nullptr;  ///< Who ran last before it: entered it, or ended.
  const void* bottom_ = nullptr;
  std::size_t size_bytes_ = 0;
  void* frames_ = nullptr;  ///< What AddressSanitizer keeps of a stack that stands still.
};

}  // namespace leasehold::testing
