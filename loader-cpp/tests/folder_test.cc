// What is the folders' alone: the names of files, and what an interrupted write leaves.
#include <fstream>
#include <iterator>
#include <map>

#include "databases/nestedfolder_md5.h"
#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_CASE("flatfolder: a file is named by its key and holds the stored record alone") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  Opened opened = place.open(*find_engine("flatfolder"), How::kCreate);
  auto client = opened.client();
  CHECK_OK(client->insert("user-1.a_B", row_of(1)));
  CHECK_OK(client->insert(".a/b %", row_of(2)));
  CHECK(content(place.path + "/records/user-1.a_B") == row_of(1).stored());
  CHECK(content(place.path + "/records/%2Ea%2Fb%20%25") == row_of(2).stored());
  CHECK(client->insert(std::string(256, 'k'), row_of(3)).code() == StatusCode::kBadInput);
  CHECK(client->insert("", row_of(3)).code() == StatusCode::kBadInput);
  CHECK(opened.count() == 2);
}

std::string md5(std::string_view message) {
  std::string digits(kMd5Digits, '?');
  md5_hex(message, digits.data());
  return digits;
}

TEST_CASE("nestedfolder: MD5 agrees with RFC 1321's own test suite") {
  CHECK(md5("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(md5("a") == "0cc175b9c0f1b6a831c399e269772661");
  CHECK(md5("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK(md5("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") ==
        "d174ab98d277d9f5a5611c2c9f419d9f");
  CHECK(md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "57edf4a22be3c955ac49da2e2107b67a");
}

TEST_CASE("nestedfolder: two levels from the 32-hex key, which is the MD5 of any other key") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  Opened opened = place.open(*find_engine("nestedfolder"), How::kCreate);
  auto client = opened.client();
  CHECK_OK(client->insert("0123456789abcdef0123456789abcdef", row_of(1)));
  CHECK_OK(client->insert("a", row_of(2)));
  CHECK_OK(client->insert("user6284781860667377211", row_of(3)));
  const std::string rows = place.path + "/records/";
  CHECK(content(rows + "01/23/0123456789abcdef0123456789abcdef") == row_of(1).stored());
  CHECK(content(rows + "0c/c1/0cc175b9c0f1b6a831c399e269772661") == row_of(2).stored());
  CHECK(content(rows + "a7/d1/a7d109f6ffa2299481efa30f2d8e6da1") == row_of(3).stored());
}

TEST_CASE("nestedfolder: keys of one form spread evenly over the first level") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  Opened opened = place.open(*find_engine("nestedfolder"), How::kCreate);
  auto client = opened.client();
  for (size_t i = 0; i < 5120; ++i) CHECK_OK(client->insert(key_of(i), row_of(i)));
  std::map<std::string, size_t> held;
  for (const auto& entry : fs::recursive_directory_iterator(place.path + "/records"))
    if (entry.is_regular_file()) ++held[entry.path().filename().string().substr(0, 2)];
  CHECK(held.size() == 256);
  for (const auto& [folder, files] : held)
    CHECK(files < 60);  // mean 20; Poisson: 60 has probability 1e-12
}

TEST_CASE("folders: an update in place keeps the file, one by renaming makes another") {
  for (const char* name : {"flatfolder", "nestedfolder"})
    for (const std::string how : {"rename", "in-place"}) {
      TemporaryDirectory directory;
      Place place{directory.path(), {}, {}};
      place.properties.set(std::string(name) + ".updates", how);
      Opened opened = place.open(*find_engine(name), How::kCreate);
      auto client = opened.client();
      CHECK_OK(client->insert("a", row_of(1)));
      const auto file = [&] {
        for (const auto& entry : fs::recursive_directory_iterator(place.path + "/records"))
          if (entry.is_regular_file()) return entry.path().string();
        return std::string();
      }();
      fs::create_hard_link(file, place.path + "/before");
      CHECK_OK(client->update("a", row_of(2), true));
      CHECK(content(file) == row_of(2).stored());
      CHECK(content(place.path + "/before") == row_of(how == "rename" ? 1 : 2).stored());
      CHECK(client->update("b", row_of(2), true).is_not_found());
    }
}

TEST_CASE("folders: what an interrupted update left is dropped at the next opening") {
  for (const char* name : {"flatfolder", "nestedfolder"}) {
    TemporaryDirectory directory;
    Place place{directory.path(), {}, {}};
    {
      Opened opened = place.open(*find_engine(name), How::kCreate);
      CHECK_OK(opened.client()->insert("a", row_of(1)));
    }
    std::ofstream(place.path + "/writing/1") << "half a rec";
    Opened opened = place.open(*find_engine(name), How::kOpen);
    CHECK(opened.count() == 1);
    CHECK(fs::is_empty(place.path + "/writing"));
  }
}

TEST_CASE("folders: a resumed load drops files without their whole record, and no other") {
  for (const char* name : {"flatfolder", "nestedfolder"}) {
    TemporaryDirectory directory;
    Place place{directory.path(), {}, {}};
    {
      Opened opened = place.open(*find_engine(name), How::kCreate);
      auto client = opened.client();
      for (size_t i = 0; i < 10; ++i) CHECK_OK(client->insert(key_of(i), row_of(i)));
    }
    size_t torn = 0;
    for (const auto& entry : fs::recursive_directory_iterator(place.path + "/records"))
      if (entry.is_regular_file() && ++torn <= 2) fs::resize_file(entry.path(), torn == 1 ? 0 : 20);
    Opened opened = place.open(*find_engine(name), How::kResume);
    CHECK(opened.count() == 8);
    CHECK(opened.database->settings().at(std::string(name) + ".torn_files_dropped") == "2");
  }
}

}  // namespace
}  // namespace opjoule
