#include "common/net/s3/s3_place.h"

#include <fstream>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

class S3PlaceTest : public ::testing::Test {
 protected:
  S3PlaceTest() { set_["HOME"] = folder_.path(); }

  Environment environment() const {
    return [this](const char* name) -> std::optional<std::string> {
      const auto found = set_.find(name);
      return found == set_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  absl::StatusOr<S3Place> Find(absl::string_view url) { return FindS3Place(url, environment()); }
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_.File(".aws"));
    std::ofstream(folder_.File(name)) << text;
  }

  testing::ScratchFolder folder_;
  std::map<std::string, std::string> set_;
};

TEST_F(S3PlaceTest, IsOfAwsWithoutAnEndpoint) {
  const auto place = Find("s3://runs/first/of-many/");
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->server.Text(), "https://runs.s3.us-east-1.amazonaws.com:443");
  EXPECT_EQ(place->prefix, "first/of-many/");
  EXPECT_EQ(place->url, "s3://runs/first/of-many");
  set_["AWS_DEFAULT_REGION"] = "eu-central-1";
  EXPECT_EQ(Find("s3://a.b")->server.Text(), "https://s3.eu-central-1.amazonaws.com:443/a.b");
  set_["AWS_REGION"] = "eu-north-1";
  EXPECT_EQ(Find("s3://runs")->region, "eu-north-1");
}

TEST_F(S3PlaceTest, HasTheBucketInThePathOfAnEndpoint) {
  set_["AWS_ENDPOINT_URL"] = "http://store:9000/";
  EXPECT_EQ(Find("s3://runs")->server.Text(), "http://store:9000/runs");
  EXPECT_EQ(Find("s3://runs")->prefix, "");
  set_["AWS_ENDPOINT_URL_S3"] = "https://other";
  EXPECT_EQ(Find("s3://runs")->server.Text(), "https://other:443/runs");
  set_["AWS_ENDPOINT_URL_S3"] = "other";
  EXPECT_THAT(Find("s3://runs").status().message(), HasSubstr("AWS_ENDPOINT_URL"));
  set_["AWS_ENDPOINT_URL_S3"] = "https://me:secret@other";
  EXPECT_EQ(Find("s3://runs").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Find("s3://runs").status().message(), ::testing::Not(HasSubstr("secret")));
}

TEST_F(S3PlaceTest, RefusesOtherUrls) {
  for (const char* url : {"", "s3://", "s3:///a", "gs://runs", "s3://runs//a", "s3://runs/a b",
                          "s3://runs/..", "s3://../a", "s3://runs/a?b", "s3://runs/\xff"}) {
    EXPECT_EQ(Find(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

TEST_F(S3PlaceTest, ReadsTheProfileOfTheConfiguration) {
  Write(".aws/config",
        "[default]\nregion = eu-west-1\n[profile other]\nregion=eu-west-2\nendpoint_url = "
        "https://store\n");
  EXPECT_EQ(Find("s3://runs")->region, "eu-west-1");
  set_["AWS_PROFILE"] = "other";
  EXPECT_EQ(Find("s3://runs")->region, "eu-west-2");
  EXPECT_EQ(Find("s3://runs")->server.Text(), "https://store:443/runs");
  Write(".aws/config", "[default\n");
  EXPECT_THAT(Find("s3://runs").status().message(), HasSubstr("config: line 1"));
}

TEST_F(S3PlaceTest, TakesCredentialsFromTheEnvironmentFirst) {
  Write(".aws/credentials",
        "[default]\naws_access_key_id = a\naws_secret_access_key = b+/=\n"
        "[other]\naws_access_key_id=c\naws_secret_access_key=d\naws_session_token=e\n");
  EXPECT_EQ(FindS3Credentials(environment())->access_key, "a");
  EXPECT_EQ(FindS3Credentials(environment())->secret_key, "b+/=");
  set_["AWS_PROFILE"] = "other";
  EXPECT_EQ(FindS3Credentials(environment())->session_token, "e");
  set_["AWS_ACCESS_KEY_ID"] = "f";
  EXPECT_EQ(FindS3Credentials(environment())->access_key, "c") << "half of a pair";
  set_["AWS_SECRET_ACCESS_KEY"] = "g";
  EXPECT_EQ(FindS3Credentials(environment())->access_key, "f");
  EXPECT_EQ(FindS3Credentials(environment())->session_token, "");
}

TEST_F(S3PlaceTest, SaysWhereItLooked) {
  const absl::Status status = FindS3Credentials(environment()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("AWS_ACCESS_KEY_ID"));
  EXPECT_THAT(status.message(), HasSubstr(folder_.File(".aws/credentials")));
}

}  // namespace
}  // namespace distro
