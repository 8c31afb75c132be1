package tableview

// tree is an ordered map from key to entry: an AVL tree whose nodes are copied before they are changed once a snapshot has
// seen them. So taking a snapshot is free, and a change after it copies the path to one node.
type tree[T any] struct {
	root *node[T]
	n    int
	// epoch owns the nodes that were made since the last snapshot: those may be changed in place.
	epoch uint64
}

type node[T any] struct {
	entry       *Entry[T]
	left, right *node[T]
	epoch       uint64
	height      int8
}

// freeze gives the present nodes away.
func (t *tree[T]) freeze() *node[T] {
	t.epoch++
	return t.root
}

func (n *node[T]) get(key string) *Entry[T] {
	for n != nil {
		switch {
		case key < n.entry.Key:
			n = n.left
		case key > n.entry.Key:
			n = n.right
		default:
			return n.entry
		}
	}
	return nil
}

// walk calls f for every entry in the order of the keys until it returns false.
func (n *node[T]) walk(f func(*Entry[T]) bool) bool {
	return n == nil || n.left.walk(f) && f(n.entry) && n.right.walk(f)
}

func (t *tree[T]) put(e *Entry[T]) { t.root = t.insert(t.root, e) }

func (t *tree[T]) insert(n *node[T], e *Entry[T]) *node[T] {
	if n == nil {
		t.n++
		return &node[T]{entry: e, epoch: t.epoch, height: 1}
	}
	n = t.own(n)
	switch {
	case e.Key < n.entry.Key:
		n.left = t.insert(n.left, e)
	case e.Key > n.entry.Key:
		n.right = t.insert(n.right, e)
	default:
		n.entry = e
		return n
	}
	return t.balance(n)
}

// remove deletes a key that is in the tree.
func (t *tree[T]) remove(key string) {
	t.root = t.delete(t.root, key)
	t.n--
}

func (t *tree[T]) delete(n *node[T], key string) *node[T] {
	n = t.own(n)
	switch {
	case key < n.entry.Key:
		n.left = t.delete(n.left, key)
	case key > n.entry.Key:
		n.right = t.delete(n.right, key)
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	default:
		next := n.right
		for next.left != nil {
			next = next.left
		}
		n.entry = next.entry
		n.right = t.delete(n.right, next.entry.Key)
	}
	return t.balance(n)
}

// own is a node that may be changed.
func (t *tree[T]) own(n *node[T]) *node[T] {
	if n.epoch == t.epoch {
		return n
	}
	c := *n
	c.epoch = t.epoch
	return &c
}

func (n *node[T]) h() int8 {
	if n == nil {
		return 0
	}
	return n.height
}

func (n *node[T]) measure() { n.height = 1 + max(n.left.h(), n.right.h()) }

// balance restores the AVL property of an owned node whose subtrees have it and differ by at most 2.
func (t *tree[T]) balance(n *node[T]) *node[T] {
	switch n.left.h() - n.right.h() {
	case 2:
		n.left = t.own(n.left)
		if n.left.left.h() < n.left.right.h() {
			n.left = t.rotateLeft(n.left)
		}
		return t.rotateRight(n)
	case -2:
		n.right = t.own(n.right)
		if n.right.right.h() < n.right.left.h() {
			n.right = t.rotateRight(n.right)
		}
		return t.rotateLeft(n)
	}
	n.measure()
	return n
}

// rotateLeft raises the right child of an owned node.
func (t *tree[T]) rotateLeft(n *node[T]) *node[T] {
	r := t.own(n.right)
	n.right, r.left = r.left, n
	n.measure()
	r.measure()
	return r
}

// rotateRight raises the left child of an owned node.
func (t *tree[T]) rotateRight(n *node[T]) *node[T] {
	l := t.own(n.left)
	n.left, l.right = l.right, n
	n.measure()
	l.measure()
	return l
}
