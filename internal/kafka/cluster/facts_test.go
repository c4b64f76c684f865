package cluster

import (
	"testing"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestSettingsOfBrokers(t *testing.T) {
	t.Parallel()
	config := func(key, value string, source kmsg.ConfigSource) kadm.Config {
		return kadm.Config{Key: key, Value: &value, Source: source}
	}
	secret := config("ssl.keystore.password", "canary", kmsg.ConfigSourceStaticBrokerConfig)
	secret.Sensitive = true
	for _, name := range identitySettings {
		assert.True(t, len(configuredOf([]kadm.Config{config(name, "x", kmsg.ConfigSourceStaticBrokerConfig)})) == 0,
			"%s, which identifies a broker, is reported", name)
	}
	one := configuredOf([]kadm.Config{
		config("num.io.threads", "64", kmsg.ConfigSourceStaticBrokerConfig), config("num.network.threads", "3", kmsg.ConfigSourceDefaultConfig),
		config("log.cleaner.threads", "2", kmsg.ConfigSourceDynamicDefaultBrokerConfig), config("node.id", "1", kmsg.ConfigSourceStaticBrokerConfig),
		secret,
		{Key: "unset", Source: kmsg.ConfigSourceStaticBrokerConfig},
	})
	assert.Same(t, one, map[string]string{"num.io.threads": "64", "log.cleaner.threads": "2"})
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
			assert.Same(t, mergeSettings(tt.described), tt.want)
		})
	}
}
