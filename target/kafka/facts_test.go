package kafka

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/testkit/kafkatest"
)

func TestSettingsOfBrokers(t *testing.T) {
	t.Parallel()
	config := func(key, value string, source kmsg.ConfigSource) kadm.Config {
		return kadm.Config{Key: key, Value: &value, Source: source}
	}
	secret := config("ssl.keystore.password", "canary", kmsg.ConfigSourceStaticBrokerConfig)
	secret.Sensitive = true
	one := configuredOf([]kadm.Config{
		config("num.io.threads", "64", kmsg.ConfigSourceStaticBrokerConfig), config("num.network.threads", "3", kmsg.ConfigSourceDefaultConfig),
		config("log.cleaner.threads", "2", kmsg.ConfigSourceDynamicDefaultBrokerConfig), config("node.id", "1", kmsg.ConfigSourceStaticBrokerConfig),
		secret,
		{Key: "unset", Source: kmsg.ConfigSourceStaticBrokerConfig},
	})
	if diff := cmp.Diff(map[string]string{"num.io.threads": "64", "log.cleaner.threads": "2"}, one); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, tt := range []struct {
		name      string
		described map[string]map[string]string
		want      map[string]string
	}{
		{"no broker answered", nil, map[string]string{}},
		{"all the same", map[string]map[string]string{"1": {"a": "x"}, "2": {"a": "x"}}, map[string]string{"a": "x"}},
		{
			"one differs, and one has the default",
			map[string]map[string]string{"10": {"a": "x"}, "2": {"a": "y"}, "9": {}, "3": {"a": "y"}},
			map[string]string{"a": "y: 2 3, its default: 9, x: 10"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mergeSettings(tt.described)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOpenAsksBrokersForTheirSettings(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"), kfake.NumBrokers(2), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "123456"}))
	s, err := open(t, spec(t, urlOf(c, "t"), nil))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := s.Facts()["broker_settings"].(map[string]string)
	if got["message.max.bytes"] != "123456" || s.Facts()["brokers_described"] != 2 {
		t.Errorf("got %v of %v brokers", got, s.Facts()["brokers_described"])
	}
	for _, name := range identitySettings {
		if got[name] != "" {
			t.Errorf("%s is reported", name)
		}
	}
}

// The version and rack of our stand-ins mean nothing, so reports leave them out.
func TestStandInsHaveNoRack(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{standinID: false, discardID: false, "another-s": true} {
		c := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.NumBrokers(1), kfake.ClusterID(id))
		s, err := open(t, spec(t, urlOf(c, "t"), nil))
		if err != nil {
			t.Fatal(err)
		}
		brokers, _ := s.Facts()["brokers"].([]map[string]any)
		if len(brokers) != 1 {
			t.Fatalf("got %v, want one broker", s.Facts()["brokers"])
		}
		_, rack := brokers[0]["rack"]
		if _, version := brokers[0]["version"]; rack != want || version != want {
			t.Errorf("%s: got %v, want a rack and a version: %v", id, brokers[0], want)
		}
	}
}

// TestRealBrokersDescribeTheirSettings checks that the settings of a real broker contain
// those of its properties file, without those that identify the broker.
func TestRealBrokersDescribeTheirSettings(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	s, err := open(t, spec(t, "kafka://"+c.Bootstrap()+"/"+kafkatest.TopicName(t), nil))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := s.Facts()["broker_settings"].(map[string]string)
	t.Log(got)
	if got["process.roles"] == "" {
		t.Errorf("got %v, want the settings of a broker", got)
	}
	for name, value := range got {
		if slices.Contains(identitySettings, name) || strings.Contains(value, c.Bootstrap()) {
			t.Errorf("%s=%s identifies this broker", name, value)
		}
	}
}
