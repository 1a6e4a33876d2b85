package client_test

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/parallel"
)

func TestMain(m *testing.M) {
	parallel.Set()
	os.Exit(m.Run())
}
