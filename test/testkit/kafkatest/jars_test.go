package kafkatest

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestNoJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	assert.ErrorHas(t, checkJava(), "apt-get install default-jre-headless")
}
