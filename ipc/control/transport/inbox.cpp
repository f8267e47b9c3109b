#include "ipc/control/transport/inbox.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace leasehold::control {

void Inbox::add(std::string_view bytes, std::vector<UniqueFd> fds) {
  // Erase consumed lines once per arrival; once per line would be quadratic in short lines.
  bytes_.erase(0, begin_);
  dropped_ += begin_;
  searched_ -= begin_;
  begin_ = 0;
  bytes_.append(bytes);
  if (!fds.empty()) arrived_.push_back({dropped_ + bytes_.size() - 1, std::move(fds)});
}

void Inbox::clear() {
  bytes_ = {};
  begin_ = searched_ = 0;
  arrived_.clear();
  charge_.set(0);
}

std::vector<UniqueFd> Inbox::claim_before(std::uint64_t end) {
  std::vector<UniqueFd> claimed;
  while (!arrived_.empty() && arrived_.front().last_byte < end) {
    std::ranges::move(arrived_.front().fds, std::back_inserter(claimed));
    arrived_.pop_front();
  }
  return claimed;
}

std::size_t Inbox::waiting_fds() const {
  std::size_t count = 0;
  for (const Arrival& arrival : arrived_) count += arrival.fds.size();
  return count;
}

Result<std::optional<Line>> Inbox::next() {
  const std::size_t newline = bytes_.find('\n', searched_);
  const bool whole = newline != std::string::npos;
  const std::size_t length = (whole ? newline : bytes_.size()) - begin_;
  if (length > limits_.max_line_bytes) {
    return fail(Errc::MessageTooLarge,
                fmt::format("a line may have {} bytes, this one has {} or more; {}",
                            limits_.max_line_bytes, length, limits_.line_hint));
  }
  if (!whole) return wait_for_more();
  Line line{.text = {}, .fds = claim_before(dropped_ + newline + 1)};
  line.text = take_text(newline);
  return line;
}

/// Frees the memory after the last line, so that an idle connection does not keep the memory of its
/// longest line.
std::string Inbox::take_text(std::size_t newline) {
  if (newline + 1 < bytes_.size()) {
    std::string text = bytes_.substr(begin_, newline - begin_);
    begin_ = searched_ = newline + 1;
    return text;
  }
  std::string text = std::exchange(bytes_, {});
  dropped_ += text.size();
  text.resize(newline);
  text.erase(0, std::exchange(begin_, 0));
  searched_ = 0;
  return text;
}

Result<std::optional<Line>> Inbox::wait_for_more() {
  searched_ = bytes_.size();
  if (waiting_fds() > limits_.max_fds) {
    return fail(Errc::MalformedMessage,
                fmt::format("a message may carry {} descriptors, {} arrived for the next one",
                            limits_.max_fds, waiting_fds()));
  }
  return std::nullopt;
}

}  // namespace leasehold::control
