//! Storage of timers: one vector of entries, linked by index into lists and a free list.
//!
//! Safe code, no allocation per timer. A slot that is reused gets another generation, so a key
//! that outlived its timer finds nothing.

const NIL: u32 = u32::MAX;

/// Names one timer; harmless after that timer has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    pub(super) fn index(self) -> u32 {
        self.index
    }
}

/// A doubly linked list of entries of one slab.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(super) const EMPTY: List = List {
        head: NIL,
        tail: NIL,
    };

    pub(super) fn is_empty(&self) -> bool {
        self.head == NIL
    }
}

/// 24 bytes beside the value and the byte that tells a free entry (often more, for alignment).
#[derive(Debug)]
pub(super) struct Entry<T> {
    at: u64,
    prev: u32,
    /// The next entry of the list, or of the free list while `value` is `None`.
    next: u32,
    generation: u32,
    value: Option<T>,
}

#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NIL,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Stores a timer that is in no list yet.
    pub(super) fn allocate(&mut self, at: u64, value: T) -> Key {
        self.len += 1;
        let index = self.free;
        if index == NIL {
            return self.grow(at, value);
        }
        let entry = &mut self.entries[index as usize];
        self.free = entry.next;
        entry.at = at;
        entry.value = Some(value);
        Key {
            index,
            generation: entry.generation,
        }
    }

    fn grow(&mut self, at: u64, value: T) -> Key {
        let index = self.entries.len() as u32;
        // 2^32 timers would need more than 100 GB; the allocator gives up first.
        assert!(self.entries.len() < NIL as usize, "more than 2^32 timers");
        self.entries.push(Entry {
            at,
            prev: NIL,
            next: NIL,
            generation: 0,
            value: Some(value),
        });
        Key {
            index,
            generation: 0,
        }
    }

    /// The deadline of a live timer.
    pub(super) fn deadline(&self, key: Key) -> Option<u64> {
        let entry = self.entries.get(key.index as usize)?;
        (entry.generation == key.generation && entry.value.is_some()).then_some(entry.at)
    }

    pub(super) fn deadline_at(&self, index: u32) -> u64 {
        self.entries[index as usize].at
    }

    /// Frees an entry that is in no list, and returns its deadline and value.
    pub(super) fn release(&mut self, index: u32) -> Option<(u64, T)> {
        let entry = &mut self.entries[index as usize];
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = self.free;
        self.free = index;
        self.len -= 1;
        Some((entry.at, value))
    }

    pub(super) fn push_back(&mut self, list: &mut List, index: u32) {
        let tail = list.tail;
        let entry = &mut self.entries[index as usize];
        entry.prev = tail;
        entry.next = NIL;
        list.tail = index;
        match tail {
            NIL => list.head = index,
            _ => self.entries[tail as usize].next = index,
        }
    }

    pub(super) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let index = list.head;
        if index == NIL {
            return None;
        }
        self.unlink(list, index);
        Some(index)
    }

    /// Removes an entry from the list that holds it.
    pub(super) fn unlink(&mut self, list: &mut List, index: u32) {
        let Entry { prev, next, .. } = self.entries[index as usize];
        match prev {
            NIL => list.head = next,
            _ => self.entries[prev as usize].next = next,
        }
        match next {
            NIL => list.tail = prev,
            _ => self.entries[next as usize].prev = prev,
        }
    }
}
