package server

import (
	"testing"
)

// opener opens connections that are counted.
type opener struct {
	t     *testing.T
	conns connections
}

func newOpener(t *testing.T) *opener { return &opener{t, connections{byUser: map[uint32]int{}}} }

// open opens n connections of a user, and returns them. All of them must be served, or rejected.
func (o *opener) open(uid uint32, n int, rejected bool) []*conn {
	o.t.Helper()
	var list []*conn
	for i := range n {
		c := &conn{peer: peer{uid: uid}, known: true, of: &o.conns}
		if !o.conns.add(c) || c.refused != rejected {
			o.t.Fatalf("connection %d of uid %d: rejected %v", i+1, uid, c.refused)
		}
		list = append(list, c)
	}
	return list
}

// close closes connections as [conn.Close] does.
func (o *opener) close(list ...*conn) {
	for _, c := range list {
		o.conns.remove(c)
	}
}

// TestUserConnections checks that one user cannot have more connections than its limit, and excludes no other user.
func TestUserConnections(t *testing.T) {
	o := newOpener(t)
	list := o.open(1000, maxUserConnections, false)
	o.close(o.open(1000, 1, true)...)
	o.open(1001, 1, false)
	o.close(list[0])
	o.open(1000, 1, false)
	o.open(1000, 1, true)
	o.open(0, maxUserConnections+1, false) // the limit does not hold for root
}

// TestRootConnections checks that users together cannot use the connections that are reserved for root, and that root has a limit as well.
func TestRootConnections(t *testing.T) {
	o := newOpener(t)
	var list []*conn
	for uid := uint32(1000); len(list) < maxConnections-reservedConnections; uid++ {
		list = append(list, o.open(uid, min(maxUserConnections, maxConnections-reservedConnections-len(list)), false)...)
	}
	o.close(o.open(2000, 1, true)...)
	o.open(0, reservedConnections, false)
	o.close(o.open(0, 1, true)...)
	o.close(list[0])
	o.close(o.open(2000, 1, true)...) // the place belongs to root
	o.open(0, 1, false)
	unknown := &conn{of: &o.conns} // a peer that the kernel has not told
	if !o.conns.add(unknown) || !unknown.refused {
		t.Error("an unknown user has a reserved connection")
	}
}

// TestRejectedConnections checks that a limited number of connections is rejected with a response. The end of one makes room, and rejected
// connections take no place of others.
func TestRejectedConnections(t *testing.T) {
	o := newOpener(t)
	served := o.open(1000, maxUserConnections, false)
	rejected := o.open(1000, maxRefused, true)
	if o.conns.add(&conn{peer: peer{uid: 1000}, known: true, of: &o.conns}) {
		t.Errorf("response for %d rejected connections", maxRefused+1)
	}
	o.close(rejected[0])
	o.open(1000, 1, true)
	if o.conns.total != maxUserConnections {
		t.Errorf("%d connections are counted, %d are served", o.conns.total, maxUserConnections)
	}
	o.close(rejected[1:]...)
	o.close(served...)
	if o.conns.total != 0 || len(o.conns.byUser) != 0 {
		t.Errorf("after all have ended, %d connections are counted, users %v", o.conns.total, o.conns.byUser)
	}
}
