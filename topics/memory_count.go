package topics

// Publishers is how many publishers have a topic open, those that stand in line for it not counted; 0 when the topic does
// not exist.
func (m *Memory) Publishers(topic string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topics[topic]
	if t == nil {
		return 0
	}
	n := t.shared
	if t.holder != nil {
		n++
	}
	return n
}
