#include "tests/simulation/gateway/host.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::gateway::simulation {
namespace {

constexpr Duration kBeat = std::chrono::milliseconds(500);

}  // namespace

HostStream::HostStream(const Text& text, const Host& host, const EmittedTokens& emitted,
                       TimePoint accepted, TimePoint begins, Duration gap)
    : text_(text),
      identity_(host.identity),
      honesty_(host.honesty),
      next_token_(begins),
      next_beat_(accepted + kBeat),
      gap_(gap) {
  for (const auto& known : emitted) positions_.push_back(static_cast<std::uint32_t>(known.size()));
}

std::optional<TimePoint> HostStream::next_time() const {
  if (has_ended_) return {};
  return std::min(next_token_, next_beat_);
}

void HostStream::resume(TimePoint now) {
  next_token_ = std::max(next_token_, now);
  next_beat_ = std::max(next_beat_, now);
}

Piece HostStream::make(TimePoint now, SeededRandom& random) {
  if (honesty_ == Honesty::OnlyBeats || next_beat_ < next_token_) {
    next_beat_ = now + kBeat;
    if (honesty_ == Honesty::OnlyBeats) next_token_ = now + kBeat;
    return {PieceKind::Beat, ": b\n\n"};
  }
  next_token_ = now + gap_;
  next_beat_ = now + kBeat;
  if (!is_complete()) return make_group(random);
  has_ended_ = true;
  return {PieceKind::Ending, text_.framed_ending(identity_)};
}

bool HostStream::is_complete() const {
  for (std::uint32_t choice = 0; choice < text_.choices(); ++choice)
    if (positions_[choice] < text_.length(choice)) return false;
  return true;
}

/// The order of the choices differs from host to host.
Piece HostStream::make_group(SeededRandom& random) {
  auto choice = static_cast<std::uint32_t>(random.below(text_.choices()));
  while (positions_[choice] == text_.length(choice)) choice = (choice + 1) % text_.choices();
  if (groups_++ >= 2) {
    if (std::optional<std::string> bytes = lie(choice)) return {PieceKind::Lie, *std::move(bytes)};
  }
  return {PieceKind::Group, text_.framed_group(identity_, choice, positions_[choice]++)};
}

std::optional<std::string> HostStream::lie(std::uint32_t choice) const {
  const std::uint32_t position = positions_[choice];
  switch (honesty_) {
    case Honesty::RepeatsPosition:
      if (position == 0) return {};
      return text_.framed_group(identity_, choice, position - 1);
    case Honesty::SkipsPosition:
      if (position + 1 >= text_.length(choice)) return {};
      return text_.framed_group(identity_, choice, position + 1);
    case Honesty::UnknownChoice:
      return fmt::format("data: x\n\n: t {} 0 1\n\n", text_.choices());
    case Honesty::BadMark:
      return fmt::format("data: x\n: t {} {} -5\n\n", choice, position);
    case Honesty::TwoMarks:
      return fmt::format("data: x\n: t {} {} 5\n: e\n\n", choice, position);
    case Honesty::LongLine:
      return "data: " + std::string(5000, 'x');
    default:
      return {};
  }
}

}  // namespace leasehold::gateway::simulation
