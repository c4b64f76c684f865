package report

import (
	"errors"
	"fmt"
	"strings"
)

// Settings of reports on topics that are not flags of the same name.
const (
	TopicsOp       = "topics "     // prefix of the operation in such a report
	TopicsNames    = "topics"      // names of topics, an argument
	TopicsFile     = "topics-file" // file with more of them
	TopicsFileHash = "topics-file-sha256"
)

// OnTopics reports whether the report is of operations on topics.
func (d *Document) OnTopics() bool { return strings.HasPrefix(d.Op, TopicsOp) }

// TopicsArgs are the arguments of the command topics that makes the same operations: the
// operation, the target, the topics and the flags. The error says what the report does not have
// for that, which is so for some reports of drop-ins; the arguments are then as near as possible.
func (d *Document) TopicsArgs() (args []string, err error) {
	op := strings.TrimPrefix(d.Op, TopicsOp)
	of := d.workloadOf()
	names, _ := of[TopicsNames].(string)
	numbered := of["count"] != nil
	var flags []string
	for _, s := range d.Settings {
		name := s.Name
		switch {
		case !s.cited(), name == TopicsNames, name == "per-request" && op != "create" && op != "delete":
			continue
		case name == "for":
			err = errors.New("its operations ended after a time")
			continue
		case name == "count" && op == "list":
			name = "times"
		}
		switch v := of[s.Name].(type) {
		case []any:
			for _, one := range v {
				flags = append(flags, "--"+name, fmt.Sprint(one))
			}
		case bool:
			flags = append(flags, fmt.Sprintf("--%s=%t", name, v))
		default:
			flags = append(flags, "--"+name, s.Value)
		}
	}
	where := d.Target
	if op == "list" {
		if !numbered && err == nil {
			err = errors.New("its operations had no end")
		}
		return append([]string{op, where}, flags...), err
	}
	if names == "" && of[TopicsFile] == nil {
		switch named := d.topicOfTarget(); {
		case named == "":
			where, err = d.withTopic("TOPIC"), errors.New("it does not have the names of the topics")
		case !numbered && err == nil:
			err = errors.New("its operations had no end")
		}
	}
	args = []string{op, where}
	if names != "" {
		args = append(args, names)
	}
	return append(args, flags...), err
}

// topicOfTarget is the path of the target, "" if it has none.
func (d *Document) topicOfTarget() string {
	where, _, _ := strings.Cut(d.Target, "?")
	_, address, _ := strings.Cut(where, "://")
	_, path, _ := strings.Cut(address, "/")
	return path
}

// withTopic is the target with a path.
func (d *Document) withTopic(path string) string {
	where, query, asks := strings.Cut(d.Target, "?")
	where = strings.TrimSuffix(where, "/") + "/" + path
	if asks {
		where += "?" + query
	}
	return where
}
