package standin

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// createMissing creates the topics that do not exist according to the answer to the
// metadata request in c.body, if the client allows it. It returns the answer that
// names them. kfake could create them itself, but writes them down only when it is
// closed, so all their events would be lost with a process that is killed.
func (c *conn) createMissing(h requestHead, answer []byte) ([]byte, error) {
	req := kmsg.NewPtrMetadataRequest()
	if err := c.decode(h, req); err != nil || !req.AllowAutoTopicCreation {
		return answer, err
	}
	resp := kmsg.NewPtrMetadataResponse()
	if err := readAnswer(h, answer, resp); err != nil {
		return nil, err
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.SetVersion(7)
	for _, t := range resp.Topics {
		if t.ErrorCode == kerr.UnknownTopicOrPartition.Code && t.Topic != nil {
			topic := kmsg.NewCreateTopicsRequestTopic()
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = *t.Topic, -1, -1
			create.Topics = append(create.Topics, topic)
		}
	}
	if len(create.Topics) == 0 {
		return answer, nil
	}
	// Another client may have created it since, so errors do not matter: the
	// second answer says what exists.
	if err := ask(c.inner, create, create.ResponseKind()); err != nil {
		return nil, err
	}
	return c.forward(c.body)
}
