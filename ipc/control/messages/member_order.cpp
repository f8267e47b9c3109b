#include "ipc/control/messages/member_order.hpp"

#include <utility>

#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {
namespace {

/// Follows the path of keys and copies the object at its end.
class OrderedCopier final : public nlohmann::json_sax<Json> {
 public:
  explicit OrderedCopier(std::span<const std::string_view> keys) : keys_(keys) {}
  std::optional<std::string> take() { return std::move(found_); }

  bool null() override { return value("null"); }
  bool boolean(bool val) override { return value(val ? "true" : "false"); }
  bool number_integer(number_integer_t val) override { return value(std::to_string(val)); }
  bool number_unsigned(number_unsigned_t val) override { return value(std::to_string(val)); }
  bool number_float(number_float_t, const string_t& text) override { return value(text); }
  bool string(string_t& val) override { return value(is_copying() ? quoted(val) : val); }
  bool binary(binary_t&) override { return false; }  // not in JSON

  bool start_object(std::size_t) override {
    if (std::exchange(is_key_next_, false)) {
      ++matched_;
      copy_.clear();
    }
    ++depth_;
    if (is_copying()) write("{");
    return true;
  }
  bool end_object() override {
    if (is_copying()) copy_ += '}';
    if (is_on_path() && matched_ > 0) {
      if (is_copying()) found_ = std::move(copy_);
      --matched_;
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    is_key_next_ = false;
    ++depth_;
    if (is_copying()) write("[");
    return true;
  }
  bool end_array() override {
    if (is_copying()) copy_ += ']';
    --depth_;
    return true;
  }
  bool key(string_t& val) override {
    if (is_copying()) {
      write(quoted(val) + ':');
    } else {
      is_key_next_ = is_on_path() && val == keys_[matched_];
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  static std::string quoted(const std::string& text) { return Json(text).dump(); }
  bool is_copying() const { return matched_ == keys_.size(); }
  /// True directly inside the last matched object, not deeper.
  bool is_on_path() const { return depth_ == matched_ + 1; }
  bool value(const std::string& text) {
    is_key_next_ = false;
    if (is_copying()) write(text);
    return true;
  }
  void write(const std::string& text) {
    const bool is_first =
        copy_.empty() || copy_.back() == '{' || copy_.back() == '[' || copy_.back() == ':';
    if (!is_first) copy_ += ',';
    copy_ += text;
  }

  std::span<const std::string_view> keys_;
  std::size_t depth_ = 0;    // open objects and arrays
  std::size_t matched_ = 0;  // number of matched keys; the object of each is open
  bool is_key_next_ = false;
  std::string copy_;
  std::optional<std::string> found_;
};

}  // namespace

std::optional<std::string> object_in_source_order(std::string_view line,
                                                  std::span<const std::string_view> keys) {
  OrderedCopier copier(keys);
  if (!Json::sax_parse(line, &copier)) return std::nullopt;
  return copier.take();
}

}  // namespace leasehold::control
