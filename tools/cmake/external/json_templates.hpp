// The parts of nlohmann::json and ordered_json that most callers use. No include guard: network.hpp
// declares their instantiations, json.cpp defines them.
LEASEHOLD_JSON_TEMPLATE nlohmann::json::basic_json(initializer_list_t, bool, value_t);
LEASEHOLD_JSON_TEMPLATE nlohmann::json::basic_json(const json&);
LEASEHOLD_JSON_TEMPLATE nlohmann::json::basic_json(value_t);
LEASEHOLD_JSON_TEMPLATE void nlohmann::json::json_value::destroy(value_t);
LEASEHOLD_JSON_TEMPLATE std::string nlohmann::json::dump(int, char, bool, error_handler_t) const;
LEASEHOLD_JSON_TEMPLATE nlohmann::json& nlohmann::json::operator[](std::string);
LEASEHOLD_JSON_TEMPLATE class std::vector<nlohmann::json>;
LEASEHOLD_JSON_TEMPLATE class std::map<std::string, nlohmann::json, std::less<>>;

LEASEHOLD_JSON_TEMPLATE nlohmann::ordered_json::basic_json(initializer_list_t, bool, value_t);
LEASEHOLD_JSON_TEMPLATE nlohmann::ordered_json::basic_json(const ordered_json&);
LEASEHOLD_JSON_TEMPLATE void nlohmann::ordered_json::json_value::destroy(value_t);
LEASEHOLD_JSON_TEMPLATE std::string nlohmann::ordered_json::dump(int, char, bool, error_handler_t) const;

namespace nlohmann::detail {

using TextInput = iterator_input_adapter<std::string::const_iterator>;
using ViewInput = iterator_input_adapter<const char*>;

LEASEHOLD_JSON_TEMPLATE class serializer<json>;
LEASEHOLD_JSON_TEMPLATE class serializer<ordered_json>;
LEASEHOLD_JSON_TEMPLATE class lexer<json, TextInput>;
LEASEHOLD_JSON_TEMPLATE class lexer<json, ViewInput>;
LEASEHOLD_JSON_TEMPLATE class parser<json, TextInput>;
LEASEHOLD_JSON_TEMPLATE class parser<json, ViewInput>;
LEASEHOLD_JSON_TEMPLATE class json_sax_dom_parser<json>;
LEASEHOLD_JSON_TEMPLATE class json_sax_dom_callback_parser<json>;

}  // namespace nlohmann::detail
