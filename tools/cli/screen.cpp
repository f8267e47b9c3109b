#include "tools/cli/screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace leasehold::cli {
namespace {

constexpr std::string_view kBegin = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kEnd = "\x1b[?25h\x1b[?1049l";

void put(int fd, std::string_view text) {
  (void)!::write(fd, text.data(), text.size());
}

/// The first `columns` characters of a UTF-8 line.
std::string_view clipped(std::string_view line, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(line[at]) & 0xC0) != 0x80;
    if (begins && ++characters > columns) return line.substr(0, at);
  }
  return line;
}

}  // namespace

std::optional<ScreenSize> screen_size(int fd) {
  winsize size{};
  if (::isatty(fd) != 1) return std::nullopt;
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return ScreenSize{};
  return ScreenSize{.rows = size.ws_row, .columns = size.ws_col};
}

/// The last line has no newline, which would scroll the screen.
std::string frame(std::string_view text, ScreenSize size) {
  std::string out = "\x1b[H";
  for (std::size_t row = 0; row < size.rows && !text.empty(); ++row) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (row > 0) out += "\r\n";
    out += clipped(text.substr(0, end), size.columns);
    out += "\x1b[K";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "\x1b[J";
}

LiveScreen::LiveScreen(int in, int out) : in_(in), out_(out) {
  termios now{};
  if (::tcgetattr(in_, &now) == 0) {
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    (void)::tcsetattr(in_, TCSANOW, &now);
  }
  put(out_, kBegin);
}

LiveScreen::~LiveScreen() {
  put(out_, kEnd);
  if (before_) (void)::tcsetattr(in_, TCSANOW, &*before_);
}

bool LiveScreen::wait(Duration duration) const {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + duration;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd key{.fd = in_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&key, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready <= 0) return true;
    char pressed = 0;
    if (::read(in_, &pressed, 1) != 1 || pressed == 'q' || pressed == 'Q') return false;
  }
}

}  // namespace leasehold::cli
