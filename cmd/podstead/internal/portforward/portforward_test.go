package portforward

import "testing"

func TestParse(t *testing.T) {
	named := func(name string) (uint16, bool) { return 8080, name == "http" }
	for _, test := range []struct {
		arg  string
		want Port
	}{
		{"80", Port{80, 80}}, {"8080:80", Port{8080, 80}}, {":80", Port{0, 80}}, {"0:80", Port{0, 80}}, {"http", Port{8080, 8080}}, {"9:http", Port{9, 8080}}, {":http", Port{0, 8080}},
	} {
		if got, err := Parse(test.arg, named); err != nil || got != test.want {
			t.Errorf("%q: got %v, %v, want %v", test.arg, got, err, test.want)
		}
	}
	for _, arg := range []string{"", ":", "0", "80:", "80:0", "65536", "1:65536", "65536:1", "-1", "x", "1:2:3"} {
		if got, err := Parse(arg, named); err == nil {
			t.Errorf("%q: got %v, want an error", arg, got)
		}
	}
}
