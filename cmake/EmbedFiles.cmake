# cmake -P: writes OUTPUT, a C++ file that defines distro::server::PageAssets() with the bytes of FILES (a list with "|").
string(REPLACE "|" ";" files "${FILES}")
set(arrays "")
set(table "")
set(number 0)
foreach(file IN LISTS files)
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  get_filename_component(name "${file}" NAME)
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND table "    {\"${name}\", absl::string_view(kFile${number}, sizeof(kFile${number}))},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "#include \"server/status/page_assets.h\"

namespace distro::server {
namespace {

${arrays}
constexpr PageAsset kAssets[] = {
${table}};

}  // namespace

absl::Span<const PageAsset> PageAssets() { return kAssets; }

}  // namespace distro::server
")
