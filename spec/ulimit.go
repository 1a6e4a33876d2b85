package spec

import (
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// Unlimited is the value of a [Ulimit] without a limit.
const Unlimited = -1

// UlimitNames are the names of limits, as in Docker.
var UlimitNames = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending",
	"stack",
}

// UlimitOpenFiles is the limit of open files. The kernel has a maximum for it.
const UlimitOpenFiles = "nofile"

// Limits returns the soft and the hard limit of a valid Ulimit.
func (u *Ulimit) Limits() (soft, hard int64) {
	soft = *u.Soft
	if u.Hard == nil {
		return soft, soft
	}
	return soft, *u.Hard
}

// String returns the short form of a valid Ulimit.
func (u *Ulimit) String() string {
	text := fmt.Sprintf("%s=%d", u.Name, *u.Soft)
	if u.Hard != nil {
		text += fmt.Sprintf(":%d", *u.Hard)
	}
	return text
}

func (v *validator) ulimits(c *Container) {
	seen := unique{}
	for i := range c.Ulimits {
		u := &c.Ulimits[i]
		v.required(u, "name", u.Name == "")
		oneOf(v, &u.Name, UlimitNames...)
		if u.Name != "" && seen.seen(u.Name) {
			v.duplicate(&u.Name, u.Name)
		}
		v.required(u, "soft", u.Soft == nil)
		for _, limit := range []*int64{u.Soft, u.Hard} {
			if limit != nil && *limit < Unlimited {
				v.bad(limit, "must be greater than or equal to 0, or -1 for unlimited")
			}
		}
		if u.Soft == nil || u.Hard == nil || *u.Hard < 0 {
			continue
		}
		if *u.Soft > *u.Hard || *u.Soft == Unlimited {
			v.invalid(u.Soft, limitText(*u.Soft), "must be less than or equal to the hard limit "+limitText(*u.Hard))
		}
	}
}

func limitText(limit int64) string {
	if limit == Unlimited {
		return "-1 (unlimited)"
	}
	return strconv.FormatInt(limit, 10)
}

// shortUlimit matches NAME=SOFT[:HARD], as in docker run --ulimit.
var shortUlimit = lazyregexp.New(`^([a-z]+)=(-1|[0-9]{1,18})(?::(-1|[0-9]{1,18}))?$`)

const ulimitForms = `"NAME=LIMIT" or "NAME=SOFT:HARD", such as "nofile=1024:65536"`

// ParseUlimit reads the form of docker run --ulimit: NAME=SOFT[:HARD]. The name is not checked.
func ParseUlimit(text string) (Ulimit, error) {
	m := shortUlimit.FindStringSubmatch(text)
	if m == nil {
		return Ulimit{}, errors.New("must be " + ulimitForms)
	}
	u := Ulimit{Name: m[1], Soft: new(limitOf(m[2]))}
	if m[3] != "" {
		u.Hard = new(limitOf(m[3]))
	}
	return u, nil
}

// limitOf returns the value of digits that shortUlimit matches.
func limitOf(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // 18 digits fit
	return n
}

// ulimits expands the elements of ulimits that are strings.
func (x *expander) ulimits(list *node) {
	if list == nil {
		return
	}
	if list.kind == kindTable { // as in Compose
		x.fail(list, "must be an array, found table", `write ulimits = ["nofile=1024:65536"]`)
		return
	}
	for _, n := range list.items {
		text, isString := n.value.(string)
		if !isString {
			continue // the decoder reports other kinds than tables
		}
		u, err := ParseUlimit(text)
		if err != nil {
			x.fail(n, "Invalid value: "+quote(text)+": "+err.Error(), "")
			continue
		}
		n.toTable()
		pairs := []pair{{"name", u.Name}, {"soft", *u.Soft}}
		if u.Hard != nil {
			pairs = append(pairs, pair{"hard", *u.Hard})
		}
		n.putPairs(pairs)
	}
}

// ulimitText returns the short form of an entry of ulimits.
func ulimitText(n *node) (string, bool) {
	values, ok := n.only("name", "soft", "hard")
	if !ok || values[0] == nil || values[1] == nil {
		return "", false
	}
	text := fmt.Sprintf("%v=%v", values[0].value, values[1].value)
	if values[2] != nil {
		text += fmt.Sprintf(":%v", values[2].value)
	}
	_, err := ParseUlimit(text)
	return text, err == nil
}

// maxPids is the largest limit of processes that a kernel can have (PID_MAX_LIMIT).
const maxPids = 1 << 22

// InitPath is the path in a container of the program that [Container.Init] adds.
const InitPath = "/dev/podstead-init"

// init checks that no mount hides the program.
func (v *validator) init(c *Container) {
	for i := range c.VolumeMounts {
		if at := path.Join("/", c.VolumeMounts[i].MountPath); c.Init && (at == path.Dir(InitPath) || at == InitPath) {
			v.bad(&c.Init, "Forbidden: the volume that is mounted at %s hides the program %s", at, InitPath)
		}
	}
}

// processLimits checks the limits of the pod for its processes and its shared memory.
func (v *validator) processLimits() {
	p := v.pod
	if p.PidsLimit != nil && (*p.PidsLimit < 1 || *p.PidsLimit > maxPids) {
		v.bad(p.PidsLimit, "%s", inRange(1, maxPids))
	}
	if p.ShmSize == nil {
		return
	}
	if p.ShmSize.Sign() <= 0 {
		v.bad(p.ShmSize, "must be greater than 0")
	}
	v.wholeBytes(p.ShmSize, *p.ShmSize)
	if p.HostIPC {
		v.bad(p.ShmSize, "Forbidden: /dev/shm is that of the host when hostIPC is true")
	}
}
