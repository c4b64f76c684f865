package apm

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

// chooseIntake replaces the bodies of intake v2 by those of v1 if the first server does not accept
// them: its version is before 6.5, or it does not say one and knows no intake v2.
func (c *config) chooseIntake(ctx context.Context, client *http.Client) (err error) {
	base := c.bases[0]
	explained := func(err error) error { return c.explain("connect to "+c.url(base, "/"), err) }
	var v server
	_, body, err := c.ask(ctx, client, http.MethodGet, c.url(base, "/"), nil)
	if err != nil {
		return explained(err)
	}
	if err := v.read(body); err != nil {
		return explained(err)
	}
	v1, known := beforeV2(v.Version)
	if !known {
		status, _, err := c.ask(ctx, client, http.MethodPost, c.url(base, c.bodyPool.source.Path()), c.empty())
		if err != nil {
			return explained(err)
		}
		v1 = status == http.StatusNotFound || status == http.StatusMethodNotAllowed
	}
	if v1 {
		c.bodyPool, err = c.v1Pool()
	}
	return err
}

// beforeV2 reports whether a server of a version is older than intake v2.
func beforeV2(version string) (before, known bool) {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	if err != nil {
		return false, false
	}
	b, err := strconv.Atoi(minor)
	if err != nil {
		return false, false
	}
	return a < 6 || a == 6 && b < 5, true
}
