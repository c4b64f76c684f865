package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/internal/advice"
	"carronade/protocol"
	"carronade/units"
)

// quotasOf asks for the quotas that apply to the run's user and client id.
func quotasOf(ctx context.Context, cl *Cluster) protocol.Finding {
	all, err := cl.Admin.DescribeClientQuotas(ctx, false, nil)
	if err != nil {
		f := protocol.Finding{Check: "quotas", Level: protocol.LevelUnknown, Found: fmt.Sprintf("the brokers do not report their quotas: %v", err)}
		if errors.Is(err, kerr.ClusterAuthorizationFailed) {
			f.Found = "the user may not see the quotas"
			f.Fix = cmp.Or(cl.Config.Grant(ACLCluster, ACLDescribeConfigs), AskAdmin)
		}
		return f
	}
	return quotaFinding(all, cl.Config)
}

// A quota is the value that applies, and to whom it was given.
type quota struct {
	key   string
	value float64
	to    string
	flags string // that name the same to kafka-configs
	rank  int
}

// entityTypes are the words of kafka-configs for what has quotas.
var entityTypes = map[string]string{"user": "users", "client-id": "clients"}

// applying returns the quotas that apply to a user and a client id: of each key the most
// specific one, in the order of Kafka's documentation (Design, Quotas).
func applying(all kadm.DescribedClientQuotas, user, clientID string) map[string]quota {
	out := map[string]quota{}
	for _, q := range all {
		rank, to, flags := 0, []string(nil), []string(nil)
		fits := len(q.Entity) > 0
		for _, e := range q.Entity {
			var name string
			var own int
			switch e.Type {
			case "user":
				name, own = user, 8
			case "client-id":
				name, own = clientID, 2
			default: // by address: it is not known which one the broker sees
				fits = false
				continue
			}
			flag := "--entity-type " + entityTypes[e.Type]
			switch {
			case e.Name == nil:
				rank += own / 2
				to = append(to, "every "+e.Type)
				flags = append(flags, flag+" --entity-default")
			case *e.Name == name:
				rank += own
				to = append(to, e.Type+" "+name)
				flags = append(flags, flag+" --entity-name "+advice.Quote(name))
			default:
				fits = false
			}
		}
		if !fits {
			continue
		}
		for _, v := range q.Values {
			if o, ok := out[v.Key]; !ok || rank > o.rank {
				out[v.Key] = quota{v.Key, v.Value, strings.Join(to, " with "), strings.Join(flags, " "), rank}
			}
		}
	}
	return out
}

// ofUser reports whether a quota is one of a named user.
func ofUser(q kadm.DescribedClientQuota) bool {
	return slices.ContainsFunc(q.Entity, func(e kadm.ClientQuotaEntityComponent) bool { return e.Type == "user" && e.Name != nil })
}

// unlimited is a rate that no broker reaches: operators set it to override a lower default.
const unlimited = 1 << 50

func quotaFinding(all kadm.DescribedClientQuotas, c *Config) protocol.Finding {
	apply := applying(all, c.Principal(), c.ClientID)
	keys := []string{"producer_byte_rate", "request_percentage"}
	switch {
	case c.OnlyReads():
		keys[0] = "consumer_byte_rate"
	case c.Op != OpProduce:
		keys = append(keys, "consumer_byte_rate")
	}
	var limits, fixes []string
	for _, key := range keys {
		q, ok := apply[key]
		if !ok || q.value >= unlimited {
			continue
		}
		fixes = append(fixes, tool(c, "kafka-configs", "--alter "+q.flags+" --delete-config "+key))
		switch key {
		case "request_percentage":
			limits = append(limits, fmt.Sprintf("%s of %s is %g %% of the brokers' request threads", key, q.to, q.value))
		default:
			limits = append(limits, fmt.Sprintf("%s of %s is %s/s for each broker", key, q.to, units.FormatSize(int64(q.value))))
		}
	}
	f := protocol.Finding{Check: "quotas", Found: fmt.Sprintf("no quota limits client-id %s", c.ClientID)}
	if len(limits) == 0 {
		if c.Security.User == "" && c.Security.Named() && slices.ContainsFunc(all, ofUser) {
			f.Level = protocol.LevelUnknown
			f.Found = "some users have quotas, and which user the brokers see is not known: they conclude it from the certificate or the token"
			if user := c.Principal(); user != "" {
				f.Found = fmt.Sprintf("some users have quotas, and none limits %s, the subject of the certificate: brokers that map subjects to names (ssl.principal.mapping.rules) may see another user", user)
			}
		}
		return f
	}
	slices.Sort(limits)
	f.Level = protocol.LevelWarning
	f.Found = "a quota limits the run: " + strings.Join(limits, "; ")
	f.Effect = "brokers delay their answers above it: the result is the quota, not what the brokers can do; another --client-id or --user may have none"
	f.Fix = strings.Join(fixes, "; ")
	return f
}
