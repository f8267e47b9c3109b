/// The terminal of a live view: uses the alternate screen, hides the cursor and reads single keys.
///
/// Threads: one. Lifetime: the destructor restores the terminal. Source: termios(3), ioctl_tty(2),
/// console_codes(4).
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.hpp"

namespace leasehold::cli {

struct ScreenSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

/// Size of the terminal; nothing if the descriptor is not a terminal.
std::optional<ScreenSize> screen_size(int fd);

/// Moves to the top left corner and clears the screen.
inline constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

/// Returns the text, cut to the screen, as a frame that overwrites the previous frame without
/// flicker. Pure.
std::string frame(std::string_view text, ScreenSize size);

class LiveScreen {
 public:
  /// `in` and `out` are a terminal. If setting it up fails, the view still works, but keys do not.
  LiveScreen(int in, int out);
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  /// Waits for this long. Returns false when the user presses q or the input ends; true at once
  /// after a signal.
  bool wait(Duration duration) const;

 private:
  int in_;
  int out_;
  std::optional<termios> before_;
};

}  // namespace leasehold::cli
