/// Texts of clients, read through a gateway that moves them from host to host. Each is read from
/// one host at a time, and only at its next position.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/simulation/cell/model_host.hpp"

namespace leasehold::cell::simulation {

class Judge;

class Texts {
 public:
  Texts(Network& network, const Terms& terms, const std::vector<std::unique_ptr<ModelHost>>& hosts,
        Judge& judge)
      : network_(network), terms_(terms), hosts_(hosts), judge_(judge) {}

  void start();
  /// No more texts begin.
  void settle() { is_settling_ = true; }
  void heard(std::size_t host, const std::vector<TextNews>& news);
  bool have_all_ended() const;

 private:
  struct Text {
    std::size_t tenant = 0;
    std::uint32_t length = 0;
    std::uint32_t position = 0;  // the next one
    std::size_t host = 0;
    std::uint64_t attempt = 0;  // zero: at no host
    std::uint64_t earlier = 0;  // the attempt before
    bool is_running = false;    // a token of this attempt has come
    std::optional<HostName> moved_from;
    TimePoint heard_at;
    bool has_ended = true;
  };

  void begin(Text& text);
  void place(Text& text);
  void place_later(Text& text);
  void watch(Text& text);
  void hear(Text& text, const TextNews& news);
  void leave(Text& text);
  void end(Text& text);

  Network& network_;
  const Terms& terms_;
  const std::vector<std::unique_ptr<ModelHost>>& hosts_;
  Judge& judge_;
  std::vector<std::unique_ptr<Text>> texts_;
  std::uint64_t attempts_ = 0;
  bool is_settling_ = false;
};

}  // namespace leasehold::cell::simulation
