#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

TEST_CASE("null: takes everything, finds everything, counts what was inserted") {
  Place place;
  Opened opened = place.open(*find_engine("null"), How::kCreate);
  auto client = opened.client();
  Row found;
  for (size_t i = 0; i < 5; ++i) CHECK_OK(client->insert(key_of(i), row_of(i)));
  CHECK_OK(client->remove(key_of(1), false));
  CHECK_OK(client->read(key_of(99), {}, found));
  CHECK_OK(client->update(key_of(99), row_of(99), true));
  CHECK_OK(client->flush());
  CHECK(opened.count() == 4);
  CHECK(opened.database->size_on_disk() == 0);
}

}  // namespace
}  // namespace opjoule
