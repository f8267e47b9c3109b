/// Holds the remaining limits of one rendering and its current line, and makes values within the
/// limits. All filters, tests, methods and operators receive it.
///
/// Errors: BadRequest where Python raises an exception; UnsupportedModel for unsupported
/// constructs; PromptTooLong for too many steps or bytes. All name the line. Threads: one.
/// Lifetime: values may outlive the runtime, but namespaces are empty from then on.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "worker/text/chat/jinja/limits.hpp"
#include "worker/text/chat/jinja/value.hpp"

namespace leasehold::jinja {

class Runtime {
 public:
  /// `now_unix_s`: the time that strftime_now prints, in UTC.
  Runtime(const Limits& limits, std::int64_t now_unix_s)
      : limits_(limits), now_unix_s_(now_unix_s), steps_left_(limits.steps) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Limits& limits() const { return limits_; }
  std::int64_t now_unix_s() const { return now_unix_s_; }

  /// The current line of the template, from 1.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  /// Counts the nesting of expressions, statements and macros.
  Nesting nest() { return Nesting(depth_); }
  Result<void> check_depth() const;

  Result<void> charge(std::uint64_t steps);
  Result<void> charge_bytes(std::uint64_t bytes) { return charge(1 + bytes / 64); }
  /// Charges for reading all of a text, list or dict, without the content of its elements.
  Result<void> charge_for(const Value& value);

  Result<Value> text(MarkedText text);
  /// Makes a text of the client, as Value::text does.
  Result<Value> text(std::string text) {
    return this->text(MarkedText(std::move(text), TextOrigin::Client));
  }
  Result<Value> list(std::vector<Value> items, bool is_tuple = false);
  Result<Value> tuple(std::vector<Value> items) { return list(std::move(items), true); }
  Result<Value> dict(std::vector<Dict::Entry> entries);
  Result<Value> callable(const Value& held, std::function<Result<Value>(const Arguments&)> call);
  Value make_namespace();

  /// `detail` describes the failure with its values; the line is added.
  std::unexpected<Error> bad_request(std::string_view detail) const;
  std::unexpected<Error> unsupported(std::string_view detail) const;
  std::unexpected<Error> too_long(std::string_view detail) const;

  /// The elements of a list, tuple or text, or the keys of a dict; none for undefined.
  /// Errors: BadRequest for other values.
  Result<std::vector<Value>> elements(const Value& value);

 private:
  Result<std::uint32_t> depth_above(std::uint32_t depth) const;

  Limits limits_;
  std::int64_t now_unix_s_;
  std::uint64_t steps_left_;
  int line_ = 1;
  std::uint32_t depth_ = 0;
  std::vector<NamespaceRef> namespaces_;
};

/// Binds the arguments of a call in the order of the callee's parameters.
class Parameters {
 public:
  Parameters(std::string callee, const Arguments& given)
      : callee_(std::move(callee)), given_(given) {}

  /// The next argument by position, else by name; null if it is missing.
  const Value* given(std::string_view name);
  /// The same, with a default.
  Value next(std::string_view name, Value fallback = Value(None{}));
  /// The argument with this name; null if it is missing.
  const Value* named(std::string_view name);

  /// Errors: BadRequest for arguments that were not taken.
  Result<void> done(const Runtime& runtime) const;

 private:
  std::string callee_;
  const Arguments& given_;
  std::size_t position_ = 0;
  std::size_t taken_by_name_ = 0;
};

}  // namespace leasehold::jinja
