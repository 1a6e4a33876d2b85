// Package parallel raises the number of parallel tests of a package whose tests mostly wait: go test runs as many as there are CPUs.
package parallel

import (
	"flag"
	"strconv"
)

// Tests is the number of parallel tests.
const Tests = 16

// Set sets the number of parallel tests, unless go test -parallel has set it. Call it in TestMain.
func Set() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(Tests)); err != nil {
		panic(err)
	}
}
