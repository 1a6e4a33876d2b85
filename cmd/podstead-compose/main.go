// Command podstead-compose converts a project of Compose to pods. podstead starts it, with a request on standard input, and reads the
// result from standard output; see package compose.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/compose/converter"
)

// version is set by the linker.
var version = "devel"

func main() {
	if len(os.Args) > 1 {
		const text = "podstead runs this program to read Compose files; use podstead convert, validate or apply"
		fmt.Fprintln(os.Stderr, compose.Program+": "+text)
		os.Exit(2)
	}
	if err := converter.Serve(context.Background(), version, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, compose.ErrVersion) {
			os.Exit(compose.StatusVersion)
		}
		os.Exit(1)
	}
}
