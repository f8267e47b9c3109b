/// A template: parse once, render many times.
///
///   Template t = TRY(Template::parse("{{ bos_token }}{% for m in messages %}…{% endfor %}"));
///   MarkedText prompt = TRY(t.render(variables, now_unix_s));
///
/// Errors and limits: worker/text/chat/jinja/runtime.hpp. Threads: any number at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/text/chat/jinja/limits.hpp"
#include "worker/text/chat/jinja/syntax.hpp"

namespace leasehold::jinja {

class Template {
 public:
  /// Errors: UnsupportedModel naming the construct and its line.
  static Result<Template> parse(std::string_view source);

  using Variables = std::vector<std::pair<std::string, Value>>;
  /// `now_unix_s`: the time that strftime_now prints.
  /// Literals and data of the template are its own text; a variable's text has its own origin.
  Result<MarkedText> render(const Variables& variables, std::int64_t now_unix_s,
                            const Limits& limits = {}) const;

 private:
  explicit Template(Body body) : body_(std::make_shared<const Body>(std::move(body))) {}
  std::shared_ptr<const Body> body_;
};

}  // namespace leasehold::jinja
