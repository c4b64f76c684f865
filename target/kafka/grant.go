package kafka

import (
	"crypto/x509"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Operations of Kafka's ACLs, as kafka-acls names them.
const (
	aclRead            = "Read"
	aclWrite           = "Write"
	aclCreate          = "Create"
	aclDescribe        = "Describe"
	aclDescribeConfigs = "DescribeConfigs"
	aclIdempotentWrite = "IdempotentWrite"
)

// Resources of Kafka's ACLs, as flags of kafka-acls.
const aclCluster = "--cluster"

func aclTopic(name string) string { return "--topic " + quoted(name) }

// grant is the command line with which an administrator gives the run's user rights on a resource.
// With a login, it is the administrator's: the user of the run usually may not do it.
func (c *config) grant(resource string, operations ...string) string {
	login := ""
	if c.security.protocol() != plaintext {
		login = " --command-config FILE"
	}
	return "kafka-acls --bootstrap-server " + strings.Join(c.seeds, ",") + login +
		" --add --allow-principal " + quoted("User:"+c.principal()) +
		" --operation " + strings.Join(operations, " --operation ") + " " + resource
}

// principal is the user that the brokers see: of the login, or the subject of the client's
// certificate as they name it unless they map names (ssl.principal.mapping.rules). Who has a token
// is not known here.
func (c *config) principal() string {
	s := c.security
	switch {
	case s.user != "":
		return s.user
	case s.mechanism != nil:
		return "NAME"
	case !s.named():
		return anonymous
	}
	if len(s.tls.Certificates) > 0 {
		own := s.tls.Certificates[0]
		leaf := own.Leaf
		if leaf == nil && len(own.Certificate) > 0 {
			leaf, _ = x509.ParseCertificate(own.Certificate[0]) // it was read before
		}
		if leaf != nil {
			return leaf.Subject.String()
		}
	}
	return "NAME"
}

// topicRights are the operations on the topic that the run needs.
func (c *config) topicRights() (out []string) {
	if !c.onlyReads() {
		out = append(out, aclWrite)
	}
	if c.op != opProduce || c.verify {
		out = append(out, aclRead)
	}
	return append(out, aclDescribe)
}

// grantFor is the command line that mends an error of authorization; "" if it is another error, or
// what it is about is not known.
func (c *config) grantFor(err error) string {
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed) && c.topic != "":
		return c.grant(aclTopic(c.topic), c.topicRights()...)
	case errors.Is(err, kerr.GroupAuthorizationFailed) && c.group != "":
		return c.grant("--group "+quoted(c.group), aclRead)
	case errors.Is(err, kerr.GroupAuthorizationFailed) && c.shareGroup != "":
		return c.grant("--group "+quoted(c.shareGroup), aclRead)
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed) && c.txn.id != "":
		return c.grant("--transactional-id "+quoted(c.txn.id)+" --resource-pattern-type prefixed", aclWrite, aclDescribe)
	case errors.Is(err, kerr.ClusterAuthorizationFailed) && c.idempotent:
		return c.grant(aclCluster, aclIdempotentWrite)
	}
	return ""
}

// seeRights are the operations that a run needs to find its topic, or to create it.
func (c *config) seeRights() []string {
	if c.create != nil {
		return []string{aclDescribe, aclCreate}
	}
	return []string{aclDescribe}
}

// missingRight returns the first operation on the topic that the run needs and that is not among
// those which the broker listed, bits numbered by AclOperation; "" if all are, or the broker lists none.
func (c *config) missingRight(ops int32) string {
	const (
		read    = 1 << 3
		write   = 1 << 4
		unknown = -1 << 31
	)
	switch {
	case ops == unknown || ops == 0:
	case !c.onlyReads() && ops&write == 0:
		return aclWrite
	case (c.op != opProduce || c.verify) && ops&read == 0:
		return aclRead
	}
	return ""
}
