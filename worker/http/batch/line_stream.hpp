/// Takes the answer of one line of a batch, where a client's connection would send it.
///
/// Threads: the one that runs `io`.
#pragma once

#include <optional>
#include <utility>

#include "worker/http/http_stream.hpp"

namespace leasehold::http {

class LineStream final : public HttpStream {
 public:
  boost::asio::awaitable<void> send(Answer answer) override {
    answer_ = std::move(answer);
    co_return;
  }
  boost::asio::awaitable<void> write_events(ServerEvents, Follows) override { co_return; }
  void watch(std::function<void()> on_change) override { on_change_ = std::move(on_change); }
  boost::asio::awaitable<void> probe() override { co_return; }
  const ExchangeLabels& labels() const override { return labels_; }
  bool is_gone() const override { return is_gone_; }

  /// Ends the line, as a client that leaves. The line gets no answer.
  void leave() {
    is_gone_ = true;
    if (on_change_) on_change_();
  }
  /// Nothing if the line was left.
  std::optional<Answer> take_answer() {
    return is_gone_ ? std::nullopt : std::exchange(answer_, std::nullopt);
  }

 private:
  ExchangeLabels labels_ = ExchangeLabels::of(std::nullopt);
  std::function<void()> on_change_;
  std::optional<Answer> answer_;
  bool is_gone_ = false;
};

}  // namespace leasehold::http
