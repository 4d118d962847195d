//! Choices made from the bytes of an input, one byte after the other. Where there are no more, each is the first one.

/// Bytes that have not been used yet.
pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    /// The choices that `bytes` stand for.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { rest: bytes }
    }

    /// Whether there are bytes left.
    pub fn any_left(&self) -> bool {
        !self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        first
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// One of `items`.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'b, T>(&mut self, items: &'b [T]) -> &'b T {
        &items[self.below(items.len())]
    }

    /// An integer: mostly a small one.
    pub fn int(&mut self) -> i64 {
        match self.byte() {
            248 => i64::MIN,
            249 => i64::MAX,
            250 => 1 << 31,
            251 => -(1 << 31) - 1,
            252 => 1 << 62,
            253 => i64::from(u32::MAX),
            254 => i64::from(i16::from_le_bytes([self.byte(), self.byte()])),
            255 => i64::from_le_bytes([(); 8].map(|()| self.byte())),
            small => i64::from(small as i8 / 8),
        }
    }

    /// A float: mostly a small multiple of 1/4.
    pub fn float(&mut self) -> f64 {
        match self.byte() {
            248 => f64::NAN,
            249 => f64::INFINITY,
            250 => f64::NEG_INFINITY,
            251 => -0.0,
            252 => f64::MAX,
            253 => f64::MIN_POSITIVE / 2.0,
            254 => self.int() as f64,
            255 => f64::from_le_bytes([(); 8].map(|()| self.byte())),
            small => f64::from(small as i8) / 4.0,
        }
    }

    /// The next `n` bytes, or as many as there are.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}
